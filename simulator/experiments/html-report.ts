import { rowsOf } from '../scenario.js';
import type { Cell, Checked, Comparison } from './comparison.js';
import { aboutLine, notes, speedLine, tablesOf } from './text-report.js';

const HEIGHT = 150;
const LEFT = 40;
const RIGHT = 18;
const TOP = 6;
const BOTTOM = 20;
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#999999', 'currentColor'];

const STYLE = `
:root{color-scheme:light dark;--line:#8883;--good:#009e73;--bad:#d55e00}
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1360px;padding:0 1em}
h3{margin:1em 0 .3em}figure{margin:0}figcaption{font-size:12px}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px;margin:.6em 0}
th,td{padding:.15em .4em;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;padding-left:0}.assertions td{text-align:left}
.holds{color:var(--good)}.fails{color:var(--bad);font-weight:bold}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));gap:.6em 1em}
.wide{grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr))}
.key{white-space:nowrap}svg{width:100%;height:auto;display:block}svg text{font:10px system-ui,sans-serif;fill:currentColor}
`;

/** One page that needs nothing else: tables, latency distributions, weights and load over time. */
export function htmlReport(comparison: Comparison): string {
  const scenarios = [...new Set(comparison.cells.map(({ scenario }) => scenario))];
  const links = scenarios.map(({ id }) => `<a href="#${html(id)}">${html(id)}</a>`);
  const sections = scenarios.map((scenario) => {
    const cells = comparison.cells.filter((cell) => cell.scenario === scenario);
    const checked = comparison.assertions.filter((it) => it.scenario === scenario.id);
    const tables = tablesOf(cells).map(table).join('');
    const title = `<h2 id="${html(scenario.id)}">${html(scenario.id)}</h2><p>${html(aboutLine(scenario))}</p>`;
    return title + tables + assertions(checked) + latency(cells) + cells.map(overTime).join('');
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Wardrop: comparison of policies</title>
<style>${STYLE}</style></head><body><h1>Comparison of policies</h1>
<p>Simulated: order and stability under a calibrated model of engines; absolute times hold for the simulated engines only.</p>
<p>${html(notes).replaceAll('\n', '<br>')}<br>${speedLine(comparison)}</p>
<p>${links.join(' · ')}</p>${sections.join('\n')}</body></html>
`;
}

function table([header, ...rows]: readonly (readonly string[])[]): string {
  const cells = (row: readonly string[], tag: string) =>
    `<tr>${row.map((cell) => `<${tag}>${html(cell)}</${tag}>`).join('')}</tr>`;
  const body = rows.map((row) => cells(row, 'td')).join('');
  return `<div class="scroll"><table><thead>${cells(header!, 'th')}</thead><tbody>${body}</tbody></table></div>`;
}

function assertions(checked: readonly Checked[]): string {
  const rows = checked.map(
    ({ text, value, result }) =>
      `<tr><td class="${result}">${result}</td><td>${html(text)}</td>` +
      `<td>${value === null ? '' : Number(value.toPrecision(4))}</td></tr>`,
  );
  return rows.length === 0 ? '' : `<table class="assertions">${rows.join('')}</table>`;
}

interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** A range, and where it is marked with what. */
interface Axis {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly (readonly [at: number, text: string])[];
}

/** The same twice: how the bulk is distributed, and on a logarithmic scale the slowest. */
function latency(cells: readonly Cell[]): string {
  const times = cells.flatMap(({ sample }) => sample.e2eQuantiles.filter((seconds) => seconds > 0));
  if (times.length === 0) return '<p>No request was measured.</p>';
  const x = logAxis(Math.min(...times), Math.max(...times));
  const lines = (y: (share: number) => number) =>
    cells.map(({ policy, sample }) => ({
      name: policy,
      points: sample.e2eQuantiles
        .map((seconds, percent) => [Math.log10(Math.max(1e-3, seconds)), y(percent / 100)] as const)
        .filter(([, at]) => Number.isFinite(at)),
    }));
  const slower = lines((share) => Math.log10(1 - share));
  const bulk = plot('complete answer: share of requests below', lines(Number), x, shareAxis, 640);
  const tail = plot('complete answer: share of requests above', slower, x, tailAxis, 640);
  return `<div class="plots wide">${bulk}${tail}</div>`;
}

const shareAxis: Axis = {
  from: 0,
  to: 1,
  ticks: [0, 0.25, 0.5, 0.75, 1].map((share) => [share, `${100 * share} %`]),
};

const tailAxis: Axis = {
  from: -2,
  to: 0,
  ticks: [0.01, 0.03, 0.1, 0.3, 1].map((share) => [Math.log10(share), `${100 * share} %`]),
};

/** Seconds, from a little below the least to the greatest, marked at 1, 2 and 5 times powers of ten. */
function logAxis(least: number, greatest: number): Axis {
  const [from, to] = [Math.log10(least) - 0.02, Math.log10(greatest) + 0.02];
  const marks = [-3, -2, -1, 0, 1, 2, 3].flatMap((power) =>
    [1, 2, 5].map((step) => Number((step * 10 ** power).toPrecision(1))),
  );
  return {
    from,
    to,
    ticks: marks.map((seconds) => [
      Math.log10(seconds),
      seconds < 1 ? `${seconds * 1_000} ms` : `${seconds} s`,
    ]),
  };
}

function overTime({ policy, scenario, sample }: Cell): string {
  const { frontends, pools, engines, warmupSeconds, seconds } = scenario;
  const end = warmupSeconds + seconds;
  const samples = sample.samples.filter(({ atSeconds }) => atSeconds <= end);
  const time: Axis = {
    from: 0,
    to: end,
    ticks: [0, 0.25, 0.5, 0.75, 1].map((share) => [share * end, `${Math.round(share * end)} s`]),
  };
  const shares = rowsOf(scenario).flatMap(({ frontend, pool }, row) => {
    const total = samples.reduce((sum, { sent }) => sum + sumOf(sent[row]!), 0);
    if (total === 0) return [];
    const lines = engines.map((engine, index) => ({
      name: engine.id,
      points: samples.map(({ atSeconds, weights, sent }) => {
        return [
          atSeconds,
          weights[row]?.[index] ?? sent[row]![index]! / Math.max(1, sumOf(sent[row]!)),
        ] as const;
      }),
    }));
    const what = samples.every(({ weights }) => weights[row]) ? 'weights' : 'shares of requests';
    const where = frontends[frontend]!.id + (pools.length === 1 ? '' : `, ${pools[pool]!.id}`);
    return [plot(`${what} of ${where}`, lines, time, shareAxis)];
  });
  const most = Math.max(1, ...samples.flatMap(({ inFlight }) => inFlight));
  const load = engines.map(({ id }, index) => ({
    name: id,
    points: samples.map(({ atSeconds, inFlight }) => [atSeconds, inFlight[index]!] as const),
  }));
  const count: Axis = {
    from: 0,
    to: most,
    ticks: [0, Math.round(most / 2), most].map((requests) => [requests, String(requests)]),
  };
  const plots = [plot('requests at each engine', load, time, count), ...shares];
  return `<h3>${html(policy)}</h3><div class="plots">${plots.join('')}</div>`;
}

function sumOf(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

function plot(title: string, lines: readonly Line[], xAxis: Axis, yAxis: Axis, width = 400): string {
  const inside = ({ from, to }: Axis, value: number) => value >= from && value <= to;
  const share = ({ from, to }: Axis, value: number) =>
    (Math.min(to, Math.max(from, value)) - from) / (to - from);
  const x = (value: number) => LEFT + share(xAxis, value) * (width - LEFT - RIGHT);
  const y = (value: number) => TOP + (1 - share(yAxis, value)) * (HEIGHT - BOTTOM - TOP);
  const paths = lines.map(({ points }, index) => {
    const path = points
      .filter(([at]) => inside(xAxis, at))
      .map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
      .join(' ');
    const dash = index >= COLOURS.length ? ' stroke-dasharray="4 3"' : '';
    return `<polyline fill="none" stroke="${colour(index)}" stroke-width="1.3"${dash} points="${path}"/>`;
  });
  const xTicks = xAxis.ticks
    .filter(([at]) => inside(xAxis, at))
    .map(
      ([at, text]) =>
        `<text x="${x(at).toFixed(1)}" y="${HEIGHT - 4}" text-anchor="middle">${text}</text>` +
        `<path d="M${x(at).toFixed(1)} ${HEIGHT - BOTTOM}v3" stroke="currentColor"/>`,
    );
  const yTicks = yAxis.ticks.map(
    ([at, text]) =>
      `<text x="${LEFT - 4}" y="${(y(at) + 3).toFixed(1)}" text-anchor="end">${text}</text>` +
      `<path d="M${LEFT} ${y(at).toFixed(1)}H${width - RIGHT}" stroke="var(--line)"/>`,
  );
  const legend = lines.map(
    ({ name }, index) => `<span class="key"><b style="color:${colour(index)}">■</b> ${html(name)}</span>`,
  );
  return (
    `<figure><figcaption>${html(title)}: ${legend.join(' ')}</figcaption>` +
    `<svg viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label="${html(title)}">` +
    `${yTicks.join('')}${xTicks.join('')}${paths.join('')}</svg></figure>`
  );
}

function colour(index: number): string {
  return COLOURS[index % COLOURS.length]!;
}

function html(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
