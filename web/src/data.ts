// Data of a page: loaded from the API, kept while the page shows it, loaded again when something happened.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { api, ApiFailure } from "./api";

/** The first view is drawn by then. */
const AFTER_MS = 150;

export type Loaded<T> = {
  data: T | null;
  failure: ApiFailure | null;
  loading: boolean;
  reload: () => void;
};

/** Loads a path. While another version loads, what is there stays; after a failure it stays too, beside the error. */
export function useApi<T>(path: string | null): Loaded<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; failure: ApiFailure | null; loading: boolean }>({
    path: null,
    data: null,
    failure: null,
    loading: true,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(path);
  latest.current = path;
  // Before the page is painted: what was asked for early may be there already.
  useLayoutEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    setState((old) => ({ path, data: old.path === path ? old.data : null, failure: old.path === path ? old.failure : null, loading: true }));
    api<T>(path, { signal: abort.signal })
      .then((data) => {
        if (latest.current === path) setState({ path, data, failure: null, loading: false });
      })
      .catch((error: unknown) => {
        if (abort.signal.aborted || latest.current !== path) return;
        const failure = error instanceof ApiFailure ? error : new ApiFailure(0, "internal", String(error));
        setState((old) => ({ path, data: failure.status === 404 ? null : old.data, failure, loading: false }));
      });
    return () => abort.abort();
  }, [path, turn]);
  const reload = useCallback(() => setTurn((old) => old + 1), []);
  const stale = state.path !== path;
  return { data: stale ? null : state.data, failure: stale ? null : state.failure, loading: stale || state.loading, reload };
}

/** A value that follows another one when that has not changed for a while. */
export function useSettled<T>(value: T, wait: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), wait);
    return () => clearTimeout(timer);
  }, [value, wait]);
  return settled;
}

/** Becomes true when the browser has nothing else to do after `ready`: for what a page can be read without. */
export function useAfter(ready: boolean): boolean {
  const [is, setIs] = useState(false);
  useEffect(() => {
    if (!ready) return;
    const timer = setTimeout(() => setIs(true), AFTER_MS);
    return () => clearTimeout(timer);
  }, [ready]);
  return is;
}
