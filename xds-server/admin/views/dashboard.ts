import { percent } from '../../percent.js';
import { plainRowsText } from '../../plan/fallback.js';
import type { Plan, PlanRow } from '../../plan/plan.js';
import { ageText } from '../age.js';
import { escapeHtml } from './html.js';
import type { EnvoyView, Overview } from './overview.js';
import { RENEWAL, RENEWAL_WITHOUT_SCRIPT } from './renewal.js';
import { shownAlarms } from './shown-alarms.js';
import { type EngineStatus, engineStatus, frontendStatus, isRemarkable } from './status.js';
import { steeringText } from './steering.js';
import { engineCells, frontendCells, isFailing, isFailingClients } from './traffic-text.js';

/**
 * More pools are a list to choose from, more engines of a pool are shown only where they have weight. Where that is still
 * more, a row has its largest weights.
 */
const MOST_POOLS = 8;
const MOST_COLUMNS = 12;
const MOST_IN_ROW = 6;
/** Of more engines or Envoys only those are shown of which there is something to say. */
const MOST_ROWS = 50;

const LINKS = [
  ['/v1/status', 'all of this in short'],
  ['/v1/plan', 'the plan in force: weights, partitions, loads and prices'],
  ['/v1/changes', 'which input changed which weight since the plan before (may take a while)'],
  [
    '/v1/headroom',
    'what the loss of each engine would do, and how much each frontend can grow (may take a while)',
  ],
  ['/v1/fleet', 'engines, replicas, demand and what was reported of them'],
  ['/v1/envoys', 'connected Envoys: what they accepted, rejected and hold'],
  ['/v1/peers', 'other control servers: who makes the plans, what each said last'],
  ['/v1/operations', 'what operators did: drains, penalties held or released'],
  ['/v1/alarms', 'what an operator should look at'],
  ['/runbook', 'what alarms mean'],
  ['/v1/config', 'the configuration in force, without secrets'],
  ['/metrics', 'metrics in Prometheus’ format'],
  ['/ready', '200 once a plan is published'],
  ['/live', '200 while the process runs'],
] as const;

const STYLE = `
:root{color-scheme:light dark;--line:#8884;--bar:#5b9bd566;--over:#e0503a88}
body{font:15px/1.45 system-ui,sans-serif;max-width:90rem;margin:1.5rem auto;padding:0 1rem}
h1{margin:0}h2{font-size:1.15rem;margin:1.6rem 0 .4rem}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .8rem .2rem 0;text-align:left;border-bottom:1px solid var(--line);white-space:nowrap}
.n{text-align:right}th,td:last-child{white-space:normal}th{vertical-align:bottom}
.alarms{border-left:4px solid #d55e00;padding:.3rem .3rem .3rem 1.6rem;margin:.6rem 0;white-space:pre-line}
#silence{color:#d55e00;position:sticky;top:0;background:Canvas}#silence:empty{margin:0}.odd{color:#d55e00}.words{min-width:16rem;white-space:normal}
.bar{display:inline-block;width:6rem;height:.7rem;background:var(--line);margin-right:.5rem}
.bar i{display:block;height:100%;background:var(--bar)}.bar i.over{background:var(--over)}
`;

/** The page at `/`: state, weights, engines and Envoys, with links to everything else. `poolId` picks one of many. */
export function dashboard(overview: Overview, poolId?: string): string {
  const { plan, alarms, envoys } = overview;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
${RENEWAL_WITHOUT_SCRIPT}<link rel="icon" href="data:,"><title>${title(alarms.length)}</title>
<style>${STYLE}</style></head><body>
<h1>Wardrop</h1><p id="silence" role="status"></p><main>
<p>${planLine(overview)}${steeringSentence(overview)}</p>
${alarms.length === 0 ? '<p>No alarms.</p>' : alarmList(overview)}
<h2>Frontends</h2>${frontendTable(overview)}
<h2>Engines</h2>${engineTable(overview)}
<p>Traffic of the last minute, as filters counted it: <i>planned for</i>, <i>offered</i> and <i>requests</i> in requests per second;
<i>failures</i> in attempts per second, also those that another engine made good; <i>4xx</i> of its answers; <i>first token</i> of streams and <i>whole answer</i>
of other requests in the mean.</p>
${plan === null ? '' : weights(plan, overview.pools, poolId)}
<h2>Envoys</h2>${envoys.length === 0 ? '<p>None is connected.</p>' : envoyTable(overview)}
<h2>All there is</h2>
${table(
  [],
  LINKS.map(([path, what]) => [`<a href="${path}">${path}</a>`, what]),
)}
<p>For programs: <code>/v1/explain?frontend=…&amp;pool=…&amp;engine=…</code>, <code>/v1/snapshot?frontend=…</code>, <code>/v1/record</code>,
<code>POST /v1/decide</code>, <code>POST /v1/what-if</code> and <code>POST /v1/operations</code>.</p>
</main>${RENEWAL}</body></html>
`;
}

/** Of the browser's tab, which is seen while another is looked at. */
function title(alarms: number): string {
  return alarms === 0 ? 'Wardrop' : `(${alarms}) Wardrop`;
}

function planLine({ plan, atMs }: Overview): string {
  if (plan === null) return 'No plan is published yet.';
  const since = new Date(plan.createdAtMs).toISOString();
  const plain = plainRowsText(plan);
  const remark =
    plain === undefined ? '' : ` <strong>${plain.charAt(0).toUpperCase()}${plain.slice(1)}.</strong>`;
  return `Plan ${plan.sequence} (${escapeHtml(plan.id)}) is in force since ${since}, ${ageText(plan.createdAtMs, atMs)} ago.${remark}`;
}

function steeringSentence({ steered }: Overview): string {
  const text = steeringText(steered);
  return text === '' ? '' : ` <strong>${text.charAt(0).toUpperCase()}${text.slice(1)}.</strong>`;
}

function alarmList({ alarms, atMs }: Overview): string {
  const { shown, more } = shownAlarms(alarms);
  const items = [
    ...shown.map(
      ({ id, message, sinceMs }) =>
        `<li>${kindLink(id)}: ${escapeHtml(message)} (for ${ageText(sinceMs, atMs)})</li>`,
    ),
    ...more.map(
      ({ kind, count }) => `<li>… and ${count} more of ${kindLink(kind)}: <a href="/v1/alarms">all</a></li>`,
    ),
  ];
  return `<ul class="alarms">${items.join('')}</ul>`;
}

/** The kind of an alarm, with a link to what it means. */
function kindLink(alarmId: string): string {
  const kind = escapeHtml(alarmId.split(':')[0]!);
  return `<a href="/runbook#${kind}" title="what it means">${kind}</a>`;
}

function frontendTable(overview: Overview): string {
  const rows = overview.frontends.map((frontend) => {
    const { frontendId, requestsPerSecond, sources, traffic, envoys } = frontendStatus(overview, frontend);
    const isMissing = envoys === 0 && requestsPerSecond > 0 && traffic.offeredPerSecond === 0;
    const [offered, refused, failed, ...latencies] = frontendCells(traffic);
    return [
      escapeHtml(frontendId),
      requestsPerSecond.toFixed(1),
      sources.join(', '),
      offered!,
      odd(refused!, (traffic.refusedShare ?? 0) > 0),
      odd(failed!, isFailingClients(traffic)),
      ...latencies,
      odd(String(envoys), isMissing),
    ];
  });
  const traffic = ['>offered', '>refused', '>failed', '>first token', '>whole answer'];
  return table(['frontend', '>planned for', 'by', ...traffic, '>Envoys'], rows);
}

function engineTable({ engines, plan }: Overview): string {
  const all = engines.map((engine) => engineStatus({ plan }, engine));
  const shown = all.length <= MOST_ROWS ? all : all.filter(isRemarkable);
  const rows = shown.map((engine) => {
    const { engineId, utilization, traffic, effectiveCapacity, readyReplicas, replicas, inFlight } = engine;
    const [requests, failures, ...latencies] = engineCells(traffic);
    return [
      escapeHtml(engineId),
      utilization === null ? '–' : `${bar(utilization)}${odd(percent(utilization, 0), utilization >= 1)}`,
      requests!,
      odd(failures!, isFailing(traffic)),
      ...latencies,
      effectiveCapacity.toFixed(2),
      odd(`${readyReplicas} of ${replicas}`, readyReplicas < replicas),
      inFlight === null ? '–' : String(inFlight),
      remarksCell(engine),
    ];
  });
  const traffic = ['>requests', '>failures', '>4xx', '>first token', '>whole answer'];
  const state = ['>capacity, replicas', '>ready', '>requests there', 'remarks'];
  return `${table(['engine', 'planned load', ...traffic, ...state], rows)}${leftOut(all.length - shown.length)}`;
}

function remarksCell({ remarks }: EngineStatus): string {
  if (remarks.length === 0) return '';
  return `<div class="words">${odd(escapeHtml(remarks.join(', ')), true)}</div>`;
}

/** Note below a table of only those of which there is something to say. */
function leftOut(count: number): string {
  return count === 0
    ? ''
    : `<p>… and ${count} more, of which there is nothing to say: <a href="/v1/status">all</a></p>`;
}

function weights(plan: Plan, pools: Overview['pools'], poolId: string | undefined): string {
  const chosen = pools.filter(({ id }) => id === poolId);
  const isShort = pools.length <= MOST_POOLS;
  const shown = isShort ? pools : chosen;
  const links = pools.map(({ id }) => `<a href="/?pool=${encodeURIComponent(id)}">${escapeHtml(id)}</a>`);
  const choice = isShort ? '' : `<h2>Weights of pool</h2><p>${links.join(' · ')}</p>`;
  return choice + shown.map((pool) => poolWeights(plan, pool)).join('');
}

function poolWeights(plan: Plan, { id, engineIds }: Overview['pools'][number]): string {
  const rows = plan.rows.filter((row) => row.poolId === id);
  const used = new Set(rows.flatMap((row) => row.weights.map(({ engineId }) => engineId)));
  const columns = engineIds.length <= MOST_COLUMNS ? engineIds : engineIds.filter((it) => used.has(it));
  const left = engineIds.length - columns.length;
  const note = left === 0 ? '' : `<p>${left} engines without weight are not shown.</p>`;
  const isWide = columns.length > MOST_COLUMNS;
  const header = [
    'frontend',
    '>requests/s',
    ...(isWide ? ['largest weights'] : columns.map((engineId) => `>${escapeHtml(engineId)}`)),
    'shed',
  ];
  const cells = rows.map((row) => [
    escapeHtml(row.frontendId),
    row.demandRps.toFixed(1),
    ...(isWide ? [largestWeights(row)] : columns.map((engineId) => weightCell(row, engineId))),
    shed(row),
  ]);
  return `<h2>Weights of ${escapeHtml(id)}</h2>${table(header, cells)}${note}`;
}

function largestWeights(row: PlanRow): string {
  const all = row.weights.toSorted((a, b) => b.weight - a.weight);
  const shown = all.slice(0, MOST_IN_ROW);
  const texts = shown.map(({ engineId }) => `${escapeHtml(engineId)} ${weightCell(row, engineId)}`);
  const left = all.length - shown.length;
  return `<div class="words">${texts.join(', ')}${left === 0 ? '' : ` and ${left} more`}</div>`;
}

function weightCell({ frontendId, poolId, weights: all }: PlanRow, engineId: string): string {
  const weight = all.find((entry) => entry.engineId === engineId)?.weight;
  const why = new URLSearchParams({ frontend: frontendId, pool: poolId, engine: engineId });
  const text = weight === undefined ? '–' : percent(weight);
  return `<a href="/v1/explain?${escapeHtml(String(why))}" title="why">${text}</a>`;
}

function shed({ shed: entries }: PlanRow): string {
  const some = entries.filter(({ fraction }) => fraction > 0);
  return some.map(({ priority, fraction }) => `${percent(fraction)} of priority ${priority}`).join(', ');
}

function envoyTable({ envoys, atMs }: Overview): string {
  const isOdd = ({ xds, snapshot }: EnvoyView) => xds !== 'all accepted' || snapshot?.isNewest !== true;
  const shown = envoys.length <= MOST_ROWS ? envoys : envoys.filter(isOdd);
  const rows = shown.map(({ nodeId, frontendId, version, xds, snapshot }) => [
    escapeHtml(nodeId),
    escapeHtml(frontendId),
    escapeHtml(version),
    odd(xds, xds !== 'all accepted'),
    snapshot === null ? 'fetches none' : snapshot.isNewest ? 'newest' : 'not the newest',
    snapshot === null ? '' : `${ageText(snapshot.lastCallAtMs, atMs)} ago`,
  ]);
  const header = ['node', 'frontend', 'Envoy', 'xDS', 'snapshot', 'last heard of'];
  return `${table(header, rows)}${leftOut(envoys.length - shown.length)}`;
}

/** Columns whose heading begins with `>` are figures, set to the right. */
function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const side = (column: number) => (header[column]?.startsWith('>') ? ' class="n"' : '');
  const head = header.map((title, column) => `<th${side(column)}>${title.replace(/^>/, '')}</th>`);
  const body = rows.map(
    (cells) => `<tr>${cells.map((cell, column) => `<td${side(column)}>${cell}</td>`).join('')}</tr>`,
  );
  const thead = header.length === 0 ? '' : `<thead><tr>${head.join('')}</tr></thead>`;
  return `<div class="scroll"><table>${thead}<tbody>${body.join('')}</tbody></table></div>`;
}

/** What a reader should look at stands out. */
function odd(html: string, isOdd: boolean): string {
  return isOdd && html !== '' ? `<strong class="odd">${html}</strong>` : html;
}

function bar(share: number): string {
  const width = Math.min(100, Math.max(0, 100 * share)).toFixed(0);
  return `<span class="bar"><i${share >= 1 ? ' class="over"' : ''} style="width:${width}%"></i></span>`;
}
