// Builds the page into crates/gateway/ui. The output depends on the sources and the lock file only.
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? fileURLToPath(new URL("../crates/gateway/ui", import.meta.url));
await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  outdir: out,
});
await build({ absWorkingDir: here, entryPoints: { app: "src/app.css" }, bundle: true, minify: true, target: ["chrome110", "firefox115", "safari16"], outdir: out });
await copyFile(`${here}/src/index.html`, `${out}/index.html`);
await copyFile(`${here}/src/icon.svg`, `${out}/icon.svg`);
