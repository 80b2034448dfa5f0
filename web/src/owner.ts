// Whose data is shown, where an operator looks at another owner's. It is part of the address, so links and back keep it.

const ELSEWHERE = /^\/api\/(me|login|logout|health|settings|tokens|runs|openapi\.json)\b/;

/** The owner that the address names; empty for one's own data. */
export function ownerMeant(): string {
  return new URLSearchParams(window.location.search).get("owner") ?? "";
}

function joined(path: string, owner: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}owner=${encodeURIComponent(owner)}`;
}

/** A path of the API, asked in the name of the owner that the address names. */
export function ofOwner(path: string): string {
  const owner = ownerMeant();
  return owner === "" || ELSEWHERE.test(path) ? path : joined(path, owner);
}

/** An address of the page that keeps the owner. */
export function keepingOwner(path: string): string {
  const owner = ownerMeant();
  return owner === "" || /[?&]owner=/.test(path) ? path : joined(path, owner);
}
