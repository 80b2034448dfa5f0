// What Throughline saved, by lever. The gateway adds it up from all calls of a conversation, so it is asked for after the rest.
import { useEffect, useState } from "preact/hooks";
import { api, ApiFailure, query } from "./api";
import { count, dollars, plural, rounded } from "./format";
import type { Savings, SavingsTotal } from "./types";

const LEVERS: Record<string, string> = {
  compaction_micro_usd: "compaction",
  tool_results_micro_usd: "shorter tool results",
  notes_micro_usd: "notes by a model",
};
const AMOUNT = "_micro_usd";

export function savedBy(total: SavingsTotal): number {
  return total.direct_micro_usd - total.paid_micro_usd;
}

/** The parts of the difference, the largest first. */
export function levers(total: SavingsTotal): { name: string; micro: number }[] {
  return Object.entries(total)
    .filter(([key, value]) => key.endsWith(AMOUNT) && !/^(paid|direct)_/.test(key) && typeof value === "number" && value !== 0)
    .map(([key, value]) => ({ name: LEVERS[key] ?? key.slice(0, -AMOUNT.length).replaceAll("_", " "), micro: Number(value) }))
    .sort((a, b) => b.micro - a.micro);
}

let queue: Promise<unknown> = Promise.resolve();

/** One after another: each reads a whole conversation. */
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const next = queue.then(work, work);
  queue = next.catch(() => undefined);
  return next;
}

/** What was saved; asked again when `stamp` changes. */
export function useSavings(values: Record<string, string | number | null>, stamp: string): { savings: Savings | null; failure: ApiFailure | null } {
  const [state, setState] = useState<{ savings: Savings | null; failure: ApiFailure | null }>({ savings: null, failure: null });
  const path = `/api/savings${query(values)}`;
  useEffect(() => {
    let wanted = true;
    void inTurn(async () => {
      if (!wanted) return;
      try {
        const savings = await api<Savings>(path);
        if (wanted) setState({ savings, failure: null });
      } catch (error) {
        if (wanted && error instanceof ApiFailure) setState((old) => ({ savings: old.savings, failure: error }));
      }
    });
    return () => {
      wanted = false;
    };
  }, [path, stamp]);
  return state;
}

export function LeverTable({ total }: { total: SavingsTotal }) {
  const rows: [string, string][] = [
    ["The same requests sent directly, by estimate", dollars(total.direct_micro_usd)],
    ["Paid", dollars(total.paid_micro_usd)],
    ...levers(total).map((lever): [string, string] => [lever.micro < 0 ? `Cost of ${lever.name}` : `Saved by ${lever.name}`, dollars(Math.abs(lever.micro))]),
    ["Prompt tokens that were not sent", rounded(total.tokens_left_out)],
  ];
  return (
    <>
      <table class="sum">
        <tbody>
          {rows.map(([name, value]) => (
            <tr key={name}>
              <th>{name}</th>
              <td class="num">{value}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th>{savedBy(total) < 0 ? "Paid more" : "Saved"}</th>
            <td class="num">{dollars(Math.abs(savedBy(total)))}</td>
          </tr>
        </tfoot>
      </table>
      <p class="soft">
        {plural(total.estimated, "call was", "calls were")} estimated; the others cost what was paid.
        {total.beyond_window > 0 ? ` ${count(total.beyond_window)} would not have fit the window and are counted with the window.` : ""}
        {total.unpriced > 0 ? ` ${plural(total.unpriced, "call has", "calls have")} no price and ${total.unpriced === 1 ? "is" : "are"} left out.` : ""}
      </p>
    </>
  );
}
