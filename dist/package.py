#!/usr/bin/env python3
"""Builds the packages of Throughline around a binary that is there already.

    dist/package.py BINARY OUT [--kind archive|wheel|npm|deb|formula|script|all] [--target TRIPLE] [--glibc 2.17] [--repository URL]

Every package holds the command, its licences and those of its dependencies, and a software bill of materials
(CycloneDX); where the system has a place for them, man pages and completions too. The same input gives the same bytes.
Needs Python and cargo, nothing else: wheels, npm packages and Debian packages are archives of a known layout.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# On PyPI and npm `throughline` is somebody else's.
PACKAGE = "throughline-context"
SUMMARY = "A context runtime for LLM agents: gateway, terminal agent, offline tools"
# Seconds; archives of any day are the same.
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1763424000"))
WHEEL_TAGS = {
    "x86_64-unknown-linux-gnu": "manylinux_{glibc}_x86_64",
    "aarch64-unknown-linux-gnu": "manylinux_{glibc}_aarch64",
    "x86_64-unknown-linux-musl": "musllinux_1_2_x86_64",
    "aarch64-unknown-linux-musl": "musllinux_1_2_aarch64",
    "x86_64-apple-darwin": "macosx_11_0_x86_64",
    "aarch64-apple-darwin": "macosx_11_0_arm64",
    "x86_64-pc-windows-msvc": "win_amd64",
}
NPM_SYSTEMS = {
    "x86_64-unknown-linux-gnu": ("linux", "x64"),
    "aarch64-unknown-linux-gnu": ("linux", "arm64"),
    "x86_64-unknown-linux-musl": ("linux", "x64"),
    "aarch64-unknown-linux-musl": ("linux", "arm64"),
    "x86_64-apple-darwin": ("darwin", "x64"),
    "aarch64-apple-darwin": ("darwin", "arm64"),
    "x86_64-pc-windows-msvc": ("win32", "x64"),
}
DEB_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def metadata():
    command = ["cargo", "metadata", "--features", "throughline-cli/postgres,throughline-cli/s3", "--format-version", "1", "--locked", "--manifest-path", str(ROOT / "Cargo.toml")]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def dependencies(data):
    """Packages in the program, without those of build scripts and tests."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    packages = {package["id"]: package for package in data["packages"]}
    root = next(package["id"] for package in data["packages"] if package["name"] == "throughline-cli")
    seen, open_ = set(), [root]
    while open_:
        current = open_.pop()
        if current in seen:
            continue
        seen.add(current)
        for dependency in nodes[current]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                open_.append(dependency["pkg"])
    found = [packages[one] for one in seen if packages[one]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def version(data):
    return next(package["version"] for package in data["packages"] if package["name"] == "throughline-cli")


def sbom(data):
    components = [
        {
            "type": "library",
            "name": package["name"],
            "version": package["version"],
            "purl": f"pkg:cargo/{package['name']}@{package['version']}",
            "licenses": [{"expression": (package["license"] or "unknown").replace("/", " OR ")}],
        }
        for package in dependencies(data)
    ]
    program = {"type": "application", "name": "throughline", "version": version(data)}
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": program}, "components": components}
    return json.dumps(bom, indent=1).encode()


def third_party(data):
    """The licence files of all dependencies; equal texts once, with the packages they are of."""
    texts = {}
    for package in dependencies(data):
        folder = Path(package["manifest_path"]).parent
        files = sorted(path for path in folder.iterdir() if path.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")))
        name = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
        found = [path.read_text(errors="replace").strip() for path in files if path.is_file()]
        for text in found or ["The package holds no licence file; its licence is the one named above."]:
            texts.setdefault(text, []).append(name)
    parts = ["Throughline contains the following packages."]
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        parts.append("=" * 100 + "\n" + "\n".join(sorted(set(names))) + "\n" + "-" * 100 + "\n" + text)
    return ("\n\n".join(parts) + "\n").encode()


def generated(binary):
    """Man pages and completions, from the program's own arguments."""
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "PATH": os.environ["PATH"]}
        run = lambda *arguments: subprocess.run([binary, *arguments], check=True, capture_output=True, env=env).stdout
        run("man", home + "/man")
        pages = {path.name: path.read_bytes() for path in sorted(Path(home, "man").iterdir())}
        shells = {shell: run("completions", shell) for shell in ("bash", "zsh", "fish")}
    return pages, shells


class Tar:
    """A tar archive whose bytes depend on nothing but its files."""

    def __init__(self):
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.GNU_FORMAT)
        self.folders = set()

    def add(self, name, content, mode=0o644, folders=False):
        if folders:
            parts = name.split("/")[:-1]
            for depth in range(1, len(parts) + 1):
                folder = "/".join(parts[:depth])
                if folder not in self.folders and folder != ".":
                    self.folders.add(folder)
                    info = tarfile.TarInfo(folder + "/")
                    info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, EPOCH
                    self.tar.addfile(info)
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = len(content), mode, EPOCH
        info.uname = info.gname = "root"
        self.tar.addfile(info, io.BytesIO(content))

    def gz(self):
        self.tar.close()
        return gzip.compress(self.bytes.getvalue(), compresslevel=9, mtime=EPOCH)


class Release:
    def __init__(self, binary, out, target, glibc, repository):
        self.out, self.target, self.glibc, self.repository = out, target, glibc, repository
        self.data = metadata()
        self.version = version(self.data)
        self.program = binary.read_bytes()
        self.exe = ".exe" if "windows" in target else ""
        self.pages, self.shells = generated(str(binary))
        self.legal = {
            "LICENSE-MIT": (ROOT / "LICENSE-MIT").read_bytes(),
            "LICENSE-APACHE": (ROOT / "LICENSE-APACHE").read_bytes(),
            "THIRD-PARTY-LICENSES.txt": third_party(self.data),
            "sbom.cdx.json": sbom(self.data),
        }

    def write(self, name, content):
        path = self.out / name
        path.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        (self.out / f"{name}.sha256").write_text(f"{digest}  {name}\n")
        print(f"{name}  {len(content):,} bytes")
        return path

    def archive(self):
        """What `install.sh` and the Homebrew formula fetch."""
        top = f"throughline-{self.version}-{self.target}"
        tar = Tar()
        tar.add(f"{top}/throughline{self.exe}", self.program, 0o755)
        for name, content in self.legal.items():
            tar.add(f"{top}/{name}", content)
        tar.add(f"{top}/README.md", (ROOT / "README.md").read_bytes())
        for name, content in self.pages.items():
            tar.add(f"{top}/man/{name}", content)
        for shell, content in self.shells.items():
            tar.add(f"{top}/completions/{completion_name(shell)}", content)
        return self.write(f"{top}.tar.gz", tar.gz())

    def wheel(self):
        """The command as a script, and the SDK."""
        tag = WHEEL_TAGS[self.target].format(glibc=self.glibc.replace(".", "_"))
        name = PACKAGE.replace("-", "_")
        stem, info = f"{name}-{self.version}", f"{name}-{self.version}.dist-info"
        files = {f"{stem}.data/scripts/throughline{self.exe}": (self.program, 0o755)}
        source = ROOT / "integrations/python/src/throughline_context"
        for path in sorted(source.rglob("*")):
            if path.suffix == ".py" or path.name == "py.typed":
                files[f"throughline_context/{path.relative_to(source).as_posix()}"] = (path.read_bytes(), 0o644)
        for file, content in self.pages.items():
            files[f"{stem}.data/data/share/man/man1/{file}"] = (content, 0o644)
        for file, content in self.legal.items():
            folder = "sboms" if file.startswith("sbom") else "licenses"
            files[f"{info}/{folder}/{file}"] = (content, 0o644)
        readme = (ROOT / "integrations/python/README.md").read_text()
        licences = "".join(f"License-File: {file}\n" for file in self.legal if not file.startswith("sbom"))
        source_url = f"Project-URL: Source, {self.repository}\n" if self.repository else ""
        described = (
            f"Metadata-Version: 2.4\nName: {PACKAGE}\nVersion: {self.version}\nSummary: {SUMMARY}\n"
            f"License-Expression: MIT OR Apache-2.0\n{licences}{source_url}Requires-Python: >=3.9\n"
            f"Description-Content-Type: text/markdown\n\n{readme}"
        )
        files[f"{info}/METADATA"] = (described.encode(), 0o644)
        files[f"{info}/WHEEL"] = (
            f"Wheel-Version: 1.0\nGenerator: throughline\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n".encode(),
            0o644,
        )
        lines = []
        for file, (content, _) in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{file},sha256={digest},{len(content)}\n")
        files[f"{info}/RECORD"] = ("".join(lines) + f"{info}/RECORD,,\n").encode(), 0o644
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
            for file, (content, mode) in files.items():
                entry = zipfile.ZipInfo(file, (2025, 11, 18, 0, 0, 0))
                entry.external_attr = (0o100000 | mode) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                wheel.writestr(entry, content)
        return self.write(f"{stem}-py3-none-{tag}.whl", packed.getvalue())

    def npm(self):
        """The command and the SDK in one package for one system; the release publishes one for each."""
        system, cpu = NPM_SYSTEMS[self.target]
        source = ROOT / "integrations/typescript"
        described = json.loads((source / "package.json").read_text())
        for unneeded in ("scripts",):
            described.pop(unneeded)
        described.update(version=self.version, os=[system], cpu=[cpu])
        if self.repository:
            described["repository"] = self.repository
        described["bin"] = {"throughline": f"bin/throughline{self.exe}"}
        if not (source / "lib/index.js").exists():
            sys.exit("integrations/typescript is not built: run `npx tsc` there first")
        tar = Tar()
        tar.add("package/package.json", json.dumps(described, indent=2).encode() + b"\n")
        tar.add("package/README.md", (source / "README.md").read_bytes())
        tar.add(f"package/bin/throughline{self.exe}", self.program, 0o755)
        for path in sorted((source / "lib").iterdir()):
            tar.add(f"package/lib/{path.name}", path.read_bytes())
        for name, content in self.legal.items():
            tar.add(f"package/{name}", content)
        return self.write(f"{PACKAGE}-{self.version}-{system}-{cpu}.tgz", tar.gz())

    def deb(self):
        """A Debian package: `ar` around a version, what dpkg reads and the files."""
        architecture = DEB_ARCHITECTURES[self.target.split("-")[0]]
        files = {"usr/bin/throughline": (self.program, 0o755)}
        for name, content in self.pages.items():
            files[f"usr/share/man/man1/{name}.gz"] = (gzip.compress(content, mtime=EPOCH), 0o644)
        places = {"bash": "bash-completion/completions", "zsh": "zsh/vendor-completions", "fish": "fish/vendor_completions.d"}
        for shell, place in places.items():
            name = "throughline" if shell == "bash" else completion_name(shell)
            files[f"usr/share/{place}/{name}"] = (self.shells[shell], 0o644)
        notice = b"License: MIT or Apache-2.0; the texts and those of the dependencies are beside this file.\n"
        files["usr/share/doc/throughline/copyright"] = (notice, 0o644)
        for name, content in self.legal.items():
            files[f"usr/share/doc/throughline/{name}"] = (content, 0o644)
        data, sums = Tar(), ""
        for name, (content, mode) in files.items():
            data.add(f"./{name}", content, mode, folders=True)
            sums += f"{hashlib.md5(content).hexdigest()}  {name}\n"
        size = sum(len(content) for content, _ in files.values()) // 1024
        depends = f"Depends: libc6 (>= {self.glibc})\n" if self.target.endswith("gnu") else ""
        homepage = f"Homepage: {self.repository}\n" if self.repository else ""
        control = Tar()
        fields = (
            f"Package: throughline\nVersion: {self.version}\nArchitecture: {architecture}\nMaintainer: The Throughline developers <noreply@throughline.invalid>\n"
            f"Installed-Size: {size}\n{depends}Section: utils\nPriority: optional\n{homepage}"
            f"Description: {SUMMARY}\n Sits between an agent and its model, stores every message and compacts what does not fit the window.\n"
        )
        control.add("./control", fields.encode())
        control.add("./md5sums", sums.encode())
        packed = b"!<arch>\n"
        for name, content in (("debian-binary", b"2.0\n"), ("control.tar.gz", control.gz()), ("data.tar.gz", data.gz())):
            packed += f"{name:<16}{EPOCH:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
            packed += b"\n" if len(content) % 2 else b""
        return self.write(f"throughline_{self.version}_{architecture}.deb", packed)

    def formula(self):
        """The Homebrew formula, with the checksums of the archives in the folder."""
        def block(target):
            name = f"throughline-{self.version}-{target}.tar.gz"
            path = self.out / name
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "0" * 64
            return f'      url "{self.repository}/releases/download/v{self.version}/{name}"\n      sha256 "{digest}"\n'

        text = (ROOT / "dist/throughline.rb.in").read_text()
        for target in ("x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-apple-darwin", "aarch64-apple-darwin"):
            text = text.replace(f"@{target}@", block(target).rstrip())
        text = text.replace("@version@", self.version).replace("@repository@", self.repository)
        return self.write("throughline.rb", text.encode())

    def script(self):
        """The install script, which knows where the releases are."""
        text = (ROOT / "dist/install.sh").read_text().replace("@releases@", f"{self.repository}/releases")
        return self.write("install.sh", text.encode())


def completion_name(shell):
    return {"bash": "throughline.bash", "zsh": "_throughline", "fish": "throughline.fish"}[shell]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kind", choices=["archive", "wheel", "npm", "deb", "formula", "script", "all"], default="all")
    parser.add_argument("--target", default="x86_64-unknown-linux-gnu", choices=sorted(WHEEL_TAGS))
    parser.add_argument("--glibc", default="2.17", help="the oldest glibc that the binary runs with")
    parser.add_argument("--repository", default="", help="where the source and the releases are")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    release = Release(given.binary.resolve(), given.out, given.target, given.glibc, given.repository.rstrip("/"))
    kinds = ["archive", "wheel", "npm", "deb", "formula", "script"] if given.kind == "all" else [given.kind]
    if "linux" not in given.target and given.kind == "all":
        kinds.remove("deb")
    for kind in kinds:
        getattr(release, kind)()


if __name__ == "__main__":
    main()
