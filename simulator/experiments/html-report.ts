import type { Cell, Comparison } from './comparison.js';
import { textReport } from './text-report.js';

const WIDTH = 420;
const HEIGHT = 150;
const LEFT = 44;
const BOTTOM = 20;
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#999999', '#000000'];

/** One page that needs nothing else: tables, latency distributions, weights and load over time. */
export function htmlReport(comparison: Comparison): string {
  const scenarios = [...new Set(comparison.cells.map(({ scenario }) => scenario))];
  const sections = scenarios.map((scenario) => {
    const cells = comparison.cells.filter((cell) => cell.scenario === scenario);
    return `<h2>${html(scenario.id)}</h2><p>${html(scenario.about)}</p>${latency(cells)}${cells.map(overTime).join('')}`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Wardrop: comparison of policies</title>
<style>
body{font:14px system-ui,sans-serif;margin:2em auto;max-width:1360px;padding:0 1em;color:#222;background:#fff}
pre{overflow-x:auto;font-size:12px}figure{display:inline-block;margin:0 1em 1em 0}figcaption{font-size:12px}
svg text{font:10px system-ui,sans-serif;fill:#444}.row{white-space:nowrap;overflow-x:auto}h3{margin:.5em 0}
</style></head><body><h1>Comparison of policies</h1>
<p>Simulated: order and stability under a calibrated model of engines; absolute times hold for the simulated engines only.</p>
<pre>${html(textReport(comparison))}</pre>${sections.join('')}</body></html>
`;
}

interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

function latency(cells: readonly Cell[]): string {
  const lines = cells.map(({ policy, sample }) => ({
    name: policy,
    points: sample.e2eQuantiles.map(
      (seconds, percent) => [Math.log10(Math.max(1e-3, seconds)), percent / 100] as const,
    ),
  }));
  const ticks = [0.1, 0.3, 1, 3, 10, 30].map((value) => [Math.log10(value), `${value} s`] as const);
  return plot('time to the complete answer: share of requests below', lines, [-1, 1.5], [0, 1], ticks, 860);
}

function overTime({ policy, scenario, sample }: Cell): string {
  const { frontends, engines, warmupSeconds, seconds } = scenario;
  const samples = sample.samples.filter(({ atSeconds }) => atSeconds <= warmupSeconds + seconds);
  const span: [number, number] = [0, warmupSeconds + seconds];
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(
    (share) => [share * span[1], `${Math.round(share * span[1])} s`] as const,
  );
  const shares = frontends.map(({ id }, frontend) => {
    const lines = engines.map((engine, index) => ({
      name: engine.id,
      points: samples.map(({ atSeconds, weights, sent }) => {
        const total = sent[frontend]!.reduce((a, b) => a + b, 0);
        return [
          atSeconds,
          weights[frontend]?.[index] ?? sent[frontend]![index]! / Math.max(1, total),
        ] as const;
      }),
    }));
    const what = samples.every(({ weights }) => weights[frontend]) ? 'weights' : 'shares of requests';
    return plot(`${what} of ${id}`, lines, span, [0, 1], ticks);
  });
  const most = Math.max(1, ...samples.flatMap(({ inFlight }) => inFlight));
  const load = engines.map(({ id }, index) => ({
    name: id,
    points: samples.map(({ atSeconds, inFlight }) => [atSeconds, inFlight[index]!] as const),
  }));
  const loads = plot('requests at each engine', load, span, [0, most], ticks);
  return `<h3>${html(policy)}</h3><div class="row">${loads}${shares.slice(0, 3).join('')}</div>`;
}

function plot(
  title: string,
  lines: readonly Line[],
  [fromX, toX]: readonly [number, number],
  [fromY, toY]: readonly [number, number],
  ticks: readonly (readonly [number, string])[],
  width = WIDTH,
): string {
  const x = (value: number) => LEFT + ((value - fromX) / (toX - fromX)) * (width - LEFT - 6);
  const y = (value: number) => 6 + (1 - (value - fromY) / (toY - fromY)) * (HEIGHT - BOTTOM - 6);
  const inside = (value: number) => value >= fromX && value <= toX;
  const paths = lines.map(({ points }, index) => {
    const path = points
      .filter(([at]) => inside(at))
      .map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
      .join(' ');
    const dash = index >= COLOURS.length ? ' stroke-dasharray="4 3"' : '';
    return `<polyline fill="none" stroke="${colour(index)}" stroke-width="1.3"${dash} points="${path}"/>`;
  });
  const xTicks = ticks
    .filter(([at]) => inside(at))
    .map(([at, text]) => `<text x="${x(at)}" y="${HEIGHT - 4}" text-anchor="middle">${text}</text>`);
  const yTicks = [fromY, (fromY + toY) / 2, toY].map(
    (value) =>
      `<text x="${LEFT - 4}" y="${y(value) + 3}" text-anchor="end">${Number(value.toPrecision(3))}</text>` +
      `<line x1="${LEFT}" x2="${width - 6}" y1="${y(value)}" y2="${y(value)}" stroke="#ddd"/>`,
  );
  const legend = lines.map(
    ({ name }, index) => `<span style="color:${colour(index)}">■</span> ${html(name)}`,
  );
  return (
    `<figure><figcaption>${html(title)}: ${legend.join(' ')}</figcaption>` +
    `<svg width="${width}" height="${HEIGHT}" role="img" aria-label="${html(title)}">` +
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
