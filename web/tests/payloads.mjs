// Texts that try to become something else: markup, links, requests, commands of a terminal, or a broken layout.

const RUN = "alert(1)";
const MARKUP = [
  `<script>${RUN}</script>`,
  `<img src=x onerror=${RUN}>`,
  `<svg onload=${RUN}>`,
  `<svg><script>${RUN}</script></svg>`,
  `<iframe srcdoc="<script>${RUN}</script>"></iframe>`,
  `<body onload=${RUN}>`,
  `<details open ontoggle=${RUN}>`,
  `<math><mtext></p><img src=x onerror=${RUN}>`,
  `<a href="javascript:${RUN}">x</a>`,
  `<form action="javascript:${RUN}"><button>x</button></form>`,
  `<object data="data:text/html,<script>${RUN}</script>"></object>`,
  `<link rel=stylesheet href=//evil.example/x.css>`,
  `<base href="//evil.example/">`,
  `<meta http-equiv=refresh content="0;url=//evil.example">`,
  `<style>*{display:none}</style>`,
  `<video><source onerror=${RUN}></video>`,
  `<template><script>${RUN}</script></template>`,
  `</article></div></main><script>${RUN}</script>`,
  `<!--<img src="--><img src=x onerror=${RUN}>">`,
  `<![CDATA[<script>${RUN}</script>]]>`,
];
const LINKS = [
  `[x](javascript:${RUN})`,
  `[x](JaVaScRiPt:${RUN})`,
  `[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)`,
  `[x](vbscript:${RUN})`,
  `![x](https://evil.example/pixel.png)`,
  `[x](//evil.example)`,
  `[x](/api/logout)`,
  `https://evil.example/"onmouseover=${RUN}`,
  `https://user:pass@evil.example/#<script>${RUN}</script>`,
  `<https://evil.example/${"a".repeat(500)}>`,
];
const ODD = [
  "\u202Eevil txt.exe\u202C",
  "\u2066\u2067\u2068nested\u2069",
  "\u200B\u200C\u200D\uFEFF",
  "\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u001b[2J",
  "\u0000\u0001\u0002\u0008\u007f\u0085\u009b31m",
  "\ud800 half a pair \udc00",
  "a\u0300".repeat(400),
  "W".repeat(20_000),
  `${"word ".repeat(8_000)}`,
  "\n".repeat(3_000),
  `|${"a|".repeat(300)}\n|${"-|".repeat(300)}\n|${"b|".repeat(300)}`,
  `${"> ".repeat(500)}deep`,
  `${"- ".repeat(300)}deep`,
  `${"*".repeat(2_000)}`,
  `${"`".repeat(2_000)}`,
  `${"[".repeat(2_000)}`,
  `${"**a ".repeat(2_000)}`,
  "```\nnever closed",
  "=cmd|' /C calc'!A0",
  "{{constructor.constructor('alert(1)')()}}",
  "${alert(1)}",
  "__proto__",
  "constructor",
  "%3Cscript%3Ealert(1)%3C/script%3E",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
  "ﷺ".repeat(300),
  "👩‍👩‍👧‍👦".repeat(300),
  "\u2028\u2029",
  "'; DROP TABLE messages; --",
  "../../../../etc/passwd",
];

/** Two hundred and more: each by itself, inside Markdown, and inside what surrounds it elsewhere. */
export function payloads() {
  const plain = [...MARKUP, ...LINKS, ...ODD];
  const wrapped = [...MARKUP, ...LINKS].flatMap((text) => [`**${text}**`, `- ${text}\n- \`${text}\``, `| ${text} | b |\n|---|---|\n| ${text} | ${text} |`, `# ${text}\n> ${text}`, `"'>${text}`]);
  return [...plain, ...wrapped];
}
