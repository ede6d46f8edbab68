import { escapeHtml } from './html.js';

const STYLE = `
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;max-width:50rem;margin:1.5rem auto;padding:0 1rem}
dt{font-weight:bold;margin-top:.8rem}dt:target,dt:target+dd{background:#d55e0033}
`;

/** The page at `/runbook`: what alarms mean, by kind, as the manual says it. `manual` is docs/operations.md. */
export function runbook(manual: string): string {
  const entries = alarmMeanings(manual).map(
    ([kind, meaning]) => `<dt id="${escapeHtml(kind)}">${escapeHtml(kind)}</dt><dd>${inline(meaning)}</dd>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><title>Wardrop: alarms</title><style>${STYLE}</style></head><body>
<h1>What alarms mean</h1>
<p>From docs/operations.md, which also says <i>what to do when</i>. <a href="/">Back</a></p>
<dl>${entries.join('\n')}</dl>
</body></html>
`;
}

/** The rows of the manual's table of alarms. */
export function alarmMeanings(manual: string): readonly (readonly [kind: string, meaning: string])[] {
  const [, rest = ''] = manual.split('\n## Alarms\n');
  const [section = ''] = rest.split('\n## ');
  return [...section.matchAll(/^\| `([a-z-]+)` *\| (.*?) *\|$/gm)].map(([, kind, meaning]) => [
    kind!,
    meaning!,
  ]);
}

/** Code, and links as their text, as they lead to pages that are not here. */
function inline(markdown: string): string {
  return escapeHtml(markdown)
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/`([^`]*)`/g, '<code>$1</code>');
}
