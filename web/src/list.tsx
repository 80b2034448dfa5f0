// A list of any length of which only what can be seen is in the document. Rows have the height of what they hold; until it is
// known, an estimate counts.
import type { VNode } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Heights of rows with their sums, so that a row is found by its place and a place by its row in logarithmic time. */
export class Heights {
  private sums: Float64Array;
  private own: Float64Array;
  readonly count: number;

  constructor(count: number, estimate: (row: number) => number, known?: Heights) {
    this.count = count;
    this.own = new Float64Array(count);
    this.sums = new Float64Array(count + 1);
    for (let row = 0; row < count; row += 1) {
      const height = known && row < known.count ? known.of(row) : estimate(row);
      this.own[row] = height;
      this.sums[row + 1] = height;
    }
    for (let at = 1; at <= count; at += 1) {
      const parent = at + (at & -at);
      if (parent <= count) this.sums[parent] = (this.sums[parent] ?? 0) + (this.sums[at] ?? 0);
    }
  }

  of(row: number): number {
    return this.own[row] ?? 0;
  }

  set(row: number, height: number): number {
    const change = height - this.of(row);
    if (change === 0) return 0;
    this.own[row] = height;
    for (let at = row + 1; at <= this.count; at += at & -at) this.sums[at] = (this.sums[at] ?? 0) + change;
    return change;
  }

  /** Where a row begins. */
  top(row: number): number {
    let sum = 0;
    for (let at = Math.min(row, this.count); at > 0; at -= at & -at) sum += this.sums[at] ?? 0;
    return sum;
  }

  /** The row at a place. */
  at(place: number): number {
    let row = 0;
    let left = place;
    let step = 1;
    while (step * 2 <= this.count) step *= 2;
    for (; step > 0; step >>= 1) {
      const next = row + step;
      if (next <= this.count && (this.sums[next] ?? 0) <= left) {
        row = next;
        left -= this.sums[next] ?? 0;
      }
    }
    return Math.min(row, Math.max(0, this.count - 1));
  }
}

const OVERSCAN_PIXELS = 600;

export type ListHandle = { show: (row: number) => void };

export function VirtualList({
  count,
  estimate,
  render,
  onRange,
  label,
  start,
  handle,
}: {
  count: number;
  estimate: (row: number) => number;
  render: (row: number) => VNode;
  onRange?: (first: number, last: number) => void;
  label: string;
  /** The row to begin at. */
  start?: number;
  handle?: { current: ListHandle | null };
}) {
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef<Heights | null>(null);
  if (heights.current === null || heights.current.count !== count) {
    heights.current = new Heights(count, estimate, heights.current ?? undefined);
  }
  const all = heights.current;
  const [range, setRange] = useState<[number, number]>([start ?? 0, Math.min(count, (start ?? 0) + 12)]);
  const [, setTurn] = useState(0);
  // The row to keep in its place while heights above it become known.
  const wanted = useRef<number | null>(start ?? null);

  const look = useCallback(() => {
    const element = box.current;
    const known = heights.current;
    if (!element || !known) return;
    const from = known.at(Math.max(0, element.scrollTop - OVERSCAN_PIXELS));
    const to = Math.min(known.count, known.at(element.scrollTop + element.clientHeight + OVERSCAN_PIXELS) + 1);
    setRange((old) => (old[0] === from && old[1] === to ? old : [from, to]));
  }, []);

  const show = useCallback(
    (row: number) => {
      const element = box.current;
      const known = heights.current;
      if (!element || !known) return;
      wanted.current = row;
      element.scrollTop = known.top(row);
      look();
    },
    [look],
  );
  if (handle) handle.current = { show };

  const observer = useRef<ResizeObserver | null>(null);
  observer.current ??= new ResizeObserver((entries) => {
    const element = box.current;
    const known = heights.current;
    if (!element || !known) return;
    const scroll = element.scrollTop;
    const anchor = wanted.current ?? known.at(scroll);
    const into = wanted.current === null ? scroll - known.top(anchor) : 0;
    let changed = 0;
    for (const entry of entries) {
      const row = Number((entry.target as HTMLElement).dataset["row"]);
      const height = entry.borderBoxSize[0]?.blockSize ?? (entry.target as HTMLElement).offsetHeight;
      if (height > 0 && row < known.count) changed += Math.abs(known.set(row, height));
    }
    if (changed < 0.5) return;
    const place = known.top(anchor) + into;
    const inner = element.firstElementChild as HTMLElement;
    inner.style.height = `${known.top(known.count)}px`;
    if (Math.abs(place - scroll) > 0.5) element.scrollTop = place;
    look();
    setTurn((old) => old + 1);
  });

  useEffect(() => () => observer.current?.disconnect(), []);
  useLayoutEffect(() => {
    look();
    const element = box.current;
    if (!element) return;
    const resized = new ResizeObserver(look);
    resized.observe(element);
    return () => resized.disconnect();
  }, [look, count]);
  useLayoutEffect(() => {
    if (start !== undefined) show(start);
  }, [start, show]);
  useEffect(() => onRange?.(range[0], range[1]), [range[0], range[1], onRange]);

  const rows: VNode[] = [];
  for (let row = range[0]; row < Math.min(range[1], count); row += 1) {
    rows.push(
      <Row key={row} row={row} top={all.top(row)} observer={observer.current}>
        {render(row)}
      </Row>,
    );
  }
  return (
    <div
      ref={box}
      class="virtual"
      tabIndex={0}
      role="region"
      aria-label={label}
      onScroll={look}
      onWheel={() => (wanted.current = null)}
      onPointerDown={() => (wanted.current = null)}
      onTouchStart={() => (wanted.current = null)}
      onKeyDown={(event) => {
        wanted.current = null;
        const element = box.current;
        if (event.target !== element || !element) return;
        if (event.key === "Home" || event.key === "End") {
          event.preventDefault();
          show(event.key === "Home" ? 0 : count - 1);
        }
      }}
    >
      <div class="inner" style={{ height: `${all.top(count)}px` }}>
        {rows}
      </div>
    </div>
  );
}

function Row({ row, top, observer, children }: { row: number; top: number; observer: ResizeObserver | null; children: VNode }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const own = element.current;
    if (!own || !observer) return;
    observer.observe(own);
    return () => observer.unobserve(own);
  }, [observer]);
  return (
    <div ref={element} class="row" data-row={row} style={{ transform: `translateY(${top}px)` }}>
      {children}
    </div>
  );
}
