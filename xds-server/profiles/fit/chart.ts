import { tbotSeconds, ttftSeconds } from '../curves.js';
import { renderReport } from './report.js';
import type { FitResult, FittedStage } from './result.js';

const width = 900;
const panelHeight = 300;
const margin = { left: 70, right: 20, top: 34, bottom: 44 };

/** Beyond the last stage that shaped them the curves are drawn dashed, up to here, as the optimizer continues them. */
const drawnRho = 1;

interface Point {
  readonly rho: number;
  readonly seconds: number;
  readonly used: boolean;
  readonly label: string;
}

interface Panel {
  readonly title: string;
  readonly points: readonly Point[];
  readonly curve: ((rho: number) => number) | undefined;
}

/** Measurements and curves over utilisation, TTFT above TBOT, as a standalone SVG document. */
export function renderSvg(result: FitResult): string {
  const panels = panelsOf(result);
  const height = panels.length * panelHeight;
  const maxRho = result.profile?.maxFittedRho ?? 0;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"` +
      ' font-family="system-ui, sans-serif" font-size="12" role="img">',
    `<title>${escapeXml(`Profile ${result.id}: measured and fitted latency over utilisation`)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...panels.map((panel, index) => drawPanel(panel, index * panelHeight, maxRho)),
    '</svg>',
    '',
  ].join('\n');
}

/** The drawing and the report on one page without outside references. */
export function renderHtml(result: FitResult): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeXml(`Profile ${result.id}`)}</title>
<style>
body { margin: 2rem auto; max-width: 1100px; padding: 0 1rem; background: #fff; color: #222; font-family: system-ui, sans-serif; }
svg { max-width: 100%; height: auto; }
pre { overflow-x: auto; font-size: 12px; }
</style>
<h1>${escapeXml(`Profile ${result.id}`)}</h1>
${renderSvg(result)}
<p>Filled points shaped the curves, hollow ones did not. Dashed: beyond the last point that did, as plans continue the
curve. Dotted: capacity.</p>
<pre>${escapeXml(renderReport(result))}</pre>
</html>
`;
}

function panelsOf({ profile, stages }: FitResult): Panel[] {
  return [
    {
      title: 'Time to first token (ms)',
      points: stages.flatMap((stage) => pointOf(stage, stage.observation.ttftSeconds, stage.ttft?.used)),
      curve: profile && ((rho) => ttftSeconds(profile, rho, meanUncached(stages))),
    },
    {
      title: 'Time between output tokens (ms)',
      points: stages.flatMap((stage) => pointOf(stage, stage.tbotSeconds, stage.tbot?.used)),
      curve: profile && ((rho) => tbotSeconds(profile, rho)),
    },
  ];
}

function pointOf(stage: FittedStage, seconds: number | undefined, used = false): Point[] {
  if (seconds === undefined) return [];
  return [{ rho: stage.rho, seconds, used, label: `${stage.observation.place} (${stage.use})` }];
}

/** The curve for prompts of several sizes is drawn for their mean. */
function meanUncached(stages: readonly FittedStage[]): number {
  const used = stages.filter(({ ttft }) => ttft?.used);
  return used.reduce((sum, stage) => sum + stage.observation.uncachedPromptTokens, 0) / used.length;
}

/** A panel's place in the drawing and its axes. */
interface Scale {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly maxMs: number;
}

const maxRhoShown = 1.05;

function x(scale: Scale, rho: number): string {
  return px(scale.left + (rho / maxRhoShown) * (scale.right - scale.left));
}

function y(scale: Scale, ms: number): string {
  return px(scale.bottom - (ms / scale.maxMs) * (scale.bottom - scale.top));
}

function drawPanel(panel: Panel, top: number, maxFittedRho: number): string {
  const scale: Scale = {
    left: margin.left,
    right: width - margin.right,
    top: top + margin.top,
    bottom: top + panelHeight - margin.bottom,
    maxMs: niceCeiling(1000 * highestSeconds(panel, maxFittedRho)),
  };
  return [
    label(scale.left, scale.top - 14, 'start', panel.title),
    ...drawAxes(scale),
    ...(panel.curve === undefined ? [] : drawCurve(scale, panel.curve, maxFittedRho)),
    ...drawPoints(scale, panel.points),
  ].join('\n');
}

/** Overloaded stages do not stretch the axis: their TTFT would flatten everything else. */
function highestSeconds({ points, curve }: Panel, maxFittedRho: number): number {
  const used = points.filter((point) => point.used);
  const shown = used.length > 0 ? used : points;
  return Math.max(...shown.map(({ seconds }) => seconds), curve?.(maxFittedRho) ?? 0, 1e-6);
}

function drawAxes(scale: Scale): string[] {
  const { left, right, top, bottom } = scale;
  const rows = ticks(scale.maxMs).flatMap((ms) => [
    `<path d="M${left} ${y(scale, ms)}H${right}" stroke="#e4e4e4"/>`,
    label(left - 8, Number(y(scale, ms)) + 4, 'end', String(ms)),
  ]);
  const columns = [0, 0.2, 0.4, 0.6, 0.8, 1].map((rho) =>
    label(Number(x(scale, rho)), bottom + 18, 'middle', rho.toFixed(1)),
  );
  return [
    ...rows,
    ...columns,
    `<path d="M${left} ${top}V${bottom}H${right}" fill="none" stroke="#888"/>`,
    `<path d="M${x(scale, 1)} ${top}V${bottom}" stroke="#b00" stroke-dasharray="2 4"/>`,
    label((left + right) / 2, bottom + 36, 'middle', 'utilisation rho'),
  ];
}

function drawCurve(scale: Scale, curve: (rho: number) => number, maxFittedRho: number): string[] {
  const end = Math.max(maxFittedRho, drawnRho);
  return [
    `<path d="${curvePath(scale, curve, 0, maxFittedRho)}" fill="none" stroke="#1663b0" stroke-width="2"/>`,
    `<path d="${curvePath(scale, curve, maxFittedRho, end)}" fill="none" stroke="#1663b0" stroke-dasharray="5 5"/>`,
  ];
}

const curveSteps = 100;

function curvePath(scale: Scale, curve: (rho: number) => number, from: number, to: number): string {
  return Array.from({ length: curveSteps + 1 }, (_, i) => from + ((to - from) * i) / curveSteps)
    .filter((rho) => 1000 * curve(rho) <= scale.maxMs)
    .map((rho, i) => `${i === 0 ? 'M' : 'L'}${x(scale, rho)} ${y(scale, 1000 * curve(rho))}`)
    .join('');
}

function drawPoints(scale: Scale, points: readonly Point[]): string[] {
  const shown = points.filter(({ rho, seconds }) => rho <= maxRhoShown && 1000 * seconds <= scale.maxMs);
  const hidden = points.length - shown.length;
  const circles = shown.map(
    ({ rho, seconds, used, label: text }) =>
      `<circle cx="${x(scale, rho)}" cy="${y(scale, 1000 * seconds)}" r="4.5" stroke="#222"` +
      ` fill="${used ? '#f0a202' : 'none'}"><title>${escapeXml(text)}</title></circle>`,
  );
  if (hidden === 0) return circles;
  const note = `not drawn, as above capacity or out of scale: ${hidden}`;
  return [...circles, label(scale.right, scale.top - 14, 'end', note)];
}

function label(left: number, top: number, anchor: 'start' | 'middle' | 'end', text: string): string {
  return `<text x="${px(left)}" y="${px(top)}" text-anchor="${anchor}" fill="#333">${escapeXml(text)}</text>`;
}

/** 1, 2 or 5 times a power of ten, four to ten steps up to `max`. */
function tickStep(max: number): number {
  const power = 10 ** Math.floor(Math.log10(max));
  return [0.1, 0.2, 0.5, 1].map((step) => step * power).find((step) => max / step <= 8) ?? power;
}

function niceCeiling(max: number): number {
  const step = tickStep(max * 1.1);
  return Math.ceil((max * 1.1) / step) * step;
}

function ticks(max: number): number[] {
  const step = tickStep(max);
  return Array.from({ length: Math.round(max / step) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

function px(value: number): string {
  return value.toFixed(1);
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
