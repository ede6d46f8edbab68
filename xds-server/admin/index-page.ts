import type { ShownServer } from './shown-server.js';

const LINKS = [
  ['/live', '200 while the process runs'],
  ['/ready', '200 once a plan is published'],
  ['/metrics', 'metrics in Prometheus’ format'],
  ['/v1/plan', 'the plan in force: weights, partitions, loads and prices'],
  ['/v1/fleet', 'engines, replicas, demand and what was reported of them'],
  ['/v1/envoys', 'connected Envoys: what they accepted, rejected and hold'],
  [
    '/v1/headroom',
    'what the loss of each engine would do, and how much each frontend can grow (may take a while)',
  ],
  ['/v1/changes', 'which input changed which weight since the plan before (may take a while)'],
  ['/v1/operations', 'what operators did: drains, penalties held or released'],
  ['/v1/alarms', 'what an operator should look at'],
  ['/v1/config', 'the configuration in force, without secrets'],
] as const;

/** A page of links, with the state of the server in a few lines. */
export function indexPage(server: ShownServer): string {
  const { plan } = server;
  const alarms = server.alarms.list;
  const state =
    plan === null
      ? 'No plan is published yet.'
      : `Plan ${plan.id}, number ${plan.sequence}, is in force since ${new Date(plan.createdAtMs).toISOString()}.`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Wardrop</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}td{padding:.1rem 1rem .1rem 0}</style>
<h1>Wardrop</h1>
<p>${state}</p>
<ul>${alarms.map(({ message }) => `<li>${escapeHtml(message)}</li>`).join('')}</ul>
<p>Why a weight is what it is: <code>/v1/explain?frontend=…&amp;engine=…</code> (and <code>&amp;pool=…</code> where there are several).
For programs: <code>/v1/snapshot?frontend=…</code>, <code>/v1/record</code>, <code>POST /v1/what-if</code> and <code>POST /v1/operations</code>.</p>
<table>${LINKS.map(([path, what]) => `<tr><td><a href="${path}">${path}</a></td><td>${what}</td></tr>`).join('')}</table>
</html>
`;
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replace(/[&<>"]/g, (character) => entities[character]!);
}
