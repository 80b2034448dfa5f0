// Plots, as SVG: the context over time, cost by call, amounts by day. Each can be read as a table and downloaded.
import type { VNode } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { rounded } from "./format";
import { download } from "./ui";

export type Layer = { key: string; name: string };
export type Line = { name: string; class: string; at: (index: number) => number | null };
export type Mark = { index: number; name: string; class: string };

type Props = {
  name: string;
  count: number;
  layers: Layer[];
  value: (index: number, key: string) => number;
  lines?: Line[];
  marks?: Mark[];
  bars?: boolean;
  height?: number;
  unit: (value: number) => string;
  describe: (index: number) => VNode;
  onPick?: (index: number) => void;
  pickName?: (index: number) => string;
  ticks?: (index: number) => string;
};

const LEFT = 46;
const BOTTOM = 20;
const TOP = 6;
// Fewer units of width for a point than this cannot be told apart.
const LEAST_STEP = 1.5;

/** Round steps for an axis up to a value. */
export function steps(top: number, most = 4): number[] {
  if (top <= 0) return [0];
  const raw = top / most;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((part) => part * size).find((one) => one >= raw) ?? 10 * size;
  const out: number[] = [];
  for (let at = 0; at <= top + step * 0.001; at += step) out.push(at);
  return out;
}

export function Plot(props: Props) {
  const { name, count, layers, value, lines = [], marks = [], bars, unit, describe, onPick, ticks } = props;
  const height = props.height ?? 220;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(640);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.max(240, Math.floor(entry.contentRect.width))));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const inner = width - LEFT - 8;
  const tall = height - BOTTOM - TOP;
  const total = useCallback((index: number) => layers.reduce((sum, { key }) => sum + value(index, key), 0), [layers, value]);
  // The largest of the points that fall together stands for them.
  const shown = useMemo(() => {
    const room = Math.max(2, Math.floor(inner / LEAST_STEP));
    if (count <= room) return Array.from({ length: count }, (_, index) => index);
    const out: number[] = [];
    for (let n = 0; n < room; n += 1) {
      const from = Math.floor((n * count) / room);
      const to = Math.floor(((n + 1) * count) / room);
      let best = from;
      for (let index = from; index < to; index += 1) if (total(index) > total(best)) best = index;
      out.push(best);
    }
    return out;
  }, [count, inner, total]);
  const top = useMemo(() => {
    let most = 0;
    for (const index of shown) {
      most = Math.max(most, total(index));
      for (const one of lines) most = Math.max(most, one.at(index) ?? 0);
    }
    return most === 0 ? 1 : most * 1.04;
  }, [shown, total, lines]);
  const x = (index: number) => LEFT + (bars ? ((index + 0.5) / count) * inner : count <= 1 ? inner / 2 : (index / (count - 1)) * inner);
  const y = (amount: number) => TOP + tall - (amount / top) * tall;
  const shapes = useMemo(() => {
    const sums = shown.map(() => 0);
    return layers.map(({ key }) => {
      const lower = sums.slice();
      shown.forEach((index, n) => (sums[n] = (sums[n] ?? 0) + value(index, key)));
      if (bars) {
        const wide = Math.max(1, Math.min(36, (inner / Math.max(1, shown.length)) * 0.78));
        return shown
          .map((index, n) => {
            const from = y(lower[n] ?? 0);
            const to = y(sums[n] ?? 0);
            return from - to < 0.05 ? "" : `M${(x(index) - wide / 2).toFixed(1)} ${from.toFixed(1)}V${to.toFixed(1)}h${wide.toFixed(1)}V${from.toFixed(1)}Z`;
          })
          .join("");
      }
      // One call would have no width; it is drawn as wide as the plot.
      const places = shown.length === 1 ? [LEFT, LEFT + inner] : shown.map(x);
      const nth = (list: number[], n: number) => list[shown.length === 1 ? 0 : n] ?? 0;
      const up = places.map((px, n) => `${px.toFixed(1)} ${y(nth(sums, n)).toFixed(1)}`);
      const down = places.map((px, n) => `${px.toFixed(1)} ${y(nth(lower, n)).toFixed(1)}`).reverse();
      return `M${up.join("L")}L${down.join("L")}Z`;
    });
  }, [shown, layers, value, inner, tall, top, bars, count]);
  const pathOf = (one: Line): string => {
    let path = "";
    let pen = false;
    for (const index of shown) {
      const amount = one.at(index);
      if (amount === null) {
        pen = false;
        continue;
      }
      const next = `${x(index).toFixed(1)} ${y(amount).toFixed(1)}`;
      path += pen ? `L${next}` : `M${next}`;
      pen = true;
    }
    return shown.length === 1 && path !== "" ? `${path}h${(inner / 2).toFixed(1)}` : path;
  };
  const nearest = (event: MouseEvent): number => {
    const rect = box.current?.getBoundingClientRect();
    const place = event.clientX - (rect?.left ?? 0) - LEFT;
    const share = place / inner;
    return Math.max(0, Math.min(count - 1, bars ? Math.floor(share * count) : Math.round(share * (count - 1))));
  };
  const keys = (event: KeyboardEvent) => {
    const last = count - 1;
    const now = at ?? last;
    const moves: Record<string, number> = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last, PageUp: now - Math.ceil(count / 10), PageDown: now + Math.ceil(count / 10) };
    const target = moves[event.key];
    if (target !== undefined) {
      event.preventDefault();
      setAt(Math.max(0, Math.min(last, target)));
    } else if (event.key === "Enter" && at !== null) onPick?.(at);
    else if (event.key === "Escape") setAt(null);
  };
  const summary = `${name}: ${count} points, at most ${unit(top / 1.04)}.${onPick ? " Arrow keys move along, Enter goes there." : " Arrow keys move along."}`;
  return (
    <div
      class="plot"
      ref={box}
      tabIndex={0}
      role="group"
      aria-label={summary}
      onKeyDown={keys}
      onMouseMove={(event) => setAt(nearest(event))}
      onMouseLeave={() => setAt(null)}
      onBlur={() => setAt(null)}
      onClick={(event) => count > 0 && onPick?.(nearest(event))}
    >
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {steps(top).map((amount) => (
          <g key={amount}>
            <line class="grid" x1={LEFT} x2={width - 8} y1={y(amount)} y2={y(amount)} />
            <text x={LEFT - 6} y={y(amount) + 4} text-anchor="end">
              {unit(amount)}
            </text>
          </g>
        ))}
        {shapes.map((shape, n) => (
          <path key={n} d={shape} class={`k-${layers[n]?.key}`} />
        ))}
        {lines.map((one) => (
          <path key={one.name} d={pathOf(one)} class={`over ${one.class}`} />
        ))}
        {marks.map((mark, n) => (
          <g key={n} class={`mark ${mark.class}`}>
            <line x1={x(Math.min(mark.index, count - 1))} x2={x(Math.min(mark.index, count - 1))} y1={TOP} y2={TOP + tall} />
            <path d={`M${x(Math.min(mark.index, count - 1)) - 4} ${TOP}h8l-4 6Z`} />
          </g>
        ))}
        {ticks && count > 0
          ? Array.from(new Set([0, Math.floor((count - 1) / 2), count - 1])).map((index) => (
              <text key={index} x={x(index)} y={height - 5} text-anchor={index === 0 && count > 1 ? "start" : index === count - 1 && count > 1 ? "end" : "middle"}>
                {ticks(index)}
              </text>
            ))
          : null}
        {at !== null && at < count ? <line class="cursor" x1={x(at)} x2={x(at)} y1={TOP} y2={TOP + tall} /> : null}
      </svg>
      {at !== null && at < count ? (
        <div class={`tip ${x(at) > width / 2 ? "left" : "right"}`} style={x(at) > width / 2 ? { right: `${width - x(at) + 10}px` } : { left: `${x(at) + 10}px` }} role="status">
          {describe(at)}
        </div>
      ) : null}
    </div>
  );
}

/** The rows of a tooltip: what it is about, and its parts. */
export function Tip({ title, rows, note }: { title: string; rows: { key: string; name: string; value: string }[]; note?: string }) {
  return (
    <>
      <b>{title}</b>
      <table>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              <th>
                <i class={`k-${row.key}`} aria-hidden="true" />
                {row.name}
              </th>
              <td>{row.value}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {note ? <p>{note}</p> : null}
    </>
  );
}

export const tokensUnit = (value: number): string => rounded(value);

function csvCell(value: string | number): string {
  const text = String(value);
  // A cell that begins so would be a formula to a spreadsheet.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csv(rows: (string | number)[][]): string {
  return rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

/** The plot as a file: its shapes with the colours they have on the page. */
export function plotSvg(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const own = svg.querySelectorAll("path, line, text, circle");
  copy.querySelectorAll("path, line, text, circle").forEach((element, n) => {
    const source = own[n];
    if (!source) return;
    const style = getComputedStyle(source);
    for (const property of ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "opacity"]) {
      element.setAttribute(property, style.getPropertyValue(property));
    }
    element.removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

type Rows = (string | number)[][];

/** The plot as SVG, and what it shows as CSV. Rows that have to be loaded are loaded when they are asked for. */
export function Downloads({ name, rows }: { name: string; rows: () => Rows | Promise<Rows> }) {
  const [problem, setProblem] = useState<string | null>(null);
  const svg = (event: MouseEvent) => {
    const drawing = (event.currentTarget as HTMLElement).closest("section")?.querySelector<SVGSVGElement>(".plot svg");
    if (drawing) download(`${name}.svg`, "image/svg+xml", plotSvg(drawing));
  };
  const table = async () => {
    setProblem(null);
    try {
      download(`${name}.csv`, "text/csv", csv(await rows()));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <span class="downloads">
      <button type="button" class="small" onClick={svg}>
        SVG
      </button>
      <button type="button" class="small" onClick={() => void table()}>
        CSV
      </button>
      {problem ? (
        <span class="bad" role="alert">
          {problem}
        </span>
      ) : null}
    </span>
  );
}
