import type { WardropError } from '../../../errors.js';
import { closest } from '../../../suggest.js';
import { type Observation, perReplica } from '../observation.js';
import { Fields, invalid } from './fields.js';

/** A quantity and the column names it may have, best first. */
interface Column {
  readonly names: readonly string[];
  /** Factor to the quantity's unit (seconds, tokens, requests). */
  readonly factor: number;
}

const plain = (...names: string[]): Column[] => [{ names, factor: 1 }];
const time = (inSeconds: string[], inMilliseconds: string[]): Column[] => [
  { names: inSeconds, factor: 1 },
  { names: inMilliseconds, factor: 1e-3 },
];

/** The first name of each is the documented one; the others are those of published files. */
const columns = {
  offered: plain('offered_rps', 'requested_rps', 'request_rate', 'offered_qps_total'),
  completed: plain('completed_rps', 'request_throughput', 'request_throughput_rps', 'requests_per_s'),
  ttftMean: time(['ttft_s', 'ttft_mean_s', 'mean_ttft_s'], ['ttft_ms', 'mean_ttft_ms']),
  ttftMedian: time(['median_ttft_s', 'ttft_p50_s'], ['median_ttft_ms']),
  tbotMean: time(
    ['tbot_s', 'tbot_mean_s', 'tbot_mean_s_recomputed', 'mean_tpot_s'],
    ['tbot_ms', 'mean_tpot_ms'],
  ),
  tbotMedian: time(['median_tpot_s', 'tpot_p50_s'], ['median_tpot_ms']),
  e2eMean: time(['e2e_s', 'e2e_mean_s', 'mean_e2e_s'], ['e2e_ms', 'mean_e2el_ms', 'mean_e2e_latency_ms']),
  e2eMedian: time(['median_e2e_s', 'e2e_p50_s'], ['median_e2el_ms', 'median_e2e_latency_ms']),
  promptTokens: plain('prompt_tokens', 'prompt_tokens_mean', 'isl'),
  cachedPromptTokens: plain('cached_prompt_tokens'),
  outputTokens: plain('output_tokens', 'output_tokens_mean', 'osl'),
  duration: time(['duration_s', 'duration'], []),
  requests: plain('requests', 'completed', 'n'),
  concurrency: plain('max_concurrency'),
  replicas: plain('replicas', 'pods'),
} satisfies Record<string, Column[]>;

type Quantity = keyof typeof columns;

/** Keeps the rows whose column `name` holds `value`. */
export interface RowFilter {
  readonly name: string;
  readonly value: string;
}

/**
 * The stages of a CSV with a header line. `replicas` is the number of replicas where the file has no such column.
 * Throws WARDROP_BENCHMARK_INVALID with file and line.
 */
export function csvObservations(
  file: string,
  text: string,
  replicas: number,
  filters: readonly RowFilter[],
): Observation[] {
  const [header, ...rows] = csvRows(file, text);
  if (header === undefined || rows.length === 0) {
    throw invalid(file, 'holds no rows', 'Expected a header line and one line a stage');
  }
  const separator = header.cells.length === 1 ? /[;\t]/.exec(header.cells[0]!)?.[0] : undefined;
  if (separator !== undefined) {
    throw invalid(
      `${file}:1`,
      `is separated by ${separator === ';' ? 'semicolons' : 'tabs'}`,
      'Write it with commas between cells and points in numbers',
    );
  }
  const names = header.cells.map((name) => name.trim().toLowerCase());
  for (const filter of filters) {
    if (!names.includes(filter.name)) {
      throw invalid(`${file}:1`, `has no column ${filter.name}`, `Columns are: ${names.join(', ')}`);
    }
  }
  const kept = rows
    .map((row) => toRow(file, names, row))
    .filter((row) => filters.every((filter) => row.text(filter.name) === filter.value));
  if (kept.length === 0) throw invalid(file, 'no row passes the filter', 'Check the value after --where');
  refuseMixture(file, kept);
  return kept.map((row) => observation(row, replicas));
}

/** Stages of different engines in one fit would give an average of machines that nobody has. */
function refuseMixture(file: string, rows: readonly Fields[]): void {
  const configs = [...new Set(rows.map((row) => row.text('config')))].filter((name) => name !== undefined);
  if (configs.length > 1) {
    const choices = configs.map((config) => `--where config=${config}`).join(', ');
    throw invalid(file, `holds ${configs.length} configurations`, `Choose one: ${choices}`);
  }
}

function toRow(file: string, names: readonly string[], row: CsvRow): Fields {
  const place = `${file}:${row.line}`;
  if (row.cells.length !== names.length) {
    throw invalid(
      place,
      `has ${row.cells.length} cells, the header has ${names.length}`,
      'Mend the line or leave it out',
    );
  }
  return new Fields(place, Object.fromEntries(names.map((name, index) => [name, row.cells[index]?.trim()])));
}

function observation(row: Fields, defaultReplicas: number): Observation {
  const ttft = optional(row, 'ttftMean');
  const statistic = ttft === undefined ? 'median' : 'mean';
  const promptTokens = required(row, 'promptTokens');
  const cached = find(row, 'cachedPromptTokens') === undefined ? 0 : row.nonNegative('cached_prompt_tokens');
  if (cached > promptTokens) {
    throw invalid(row.place, `${cached} cached of ${promptTokens} prompt tokens`, 'Swap or mend the columns');
  }
  const outputTokens = required(row, 'outputTokens');
  const limit = optional(row, 'concurrency');
  const offered = find(row, 'offered');
  if (offered === undefined && limit === undefined) {
    throw missing(row, 'offered');
  }
  return perReplica(
    {
      place: row.place,
      offeredRps: offered === undefined ? Infinity : row.rate(offered.name),
      completedRps: required(row, 'completed'),
      ttftSeconds: ttft ?? required(row, 'ttftMedian', 'ttftMean'),
      reportedTbotSeconds:
        outputTokens > 1
          ? required(row, statistic === 'mean' ? 'tbotMean' : 'tbotMedian', 'tbotMean')
          : undefined,
      e2eSeconds: optional(row, statistic === 'mean' ? 'e2eMean' : 'e2eMedian'),
      statistic,
      promptTokens,
      uncachedPromptTokens: promptTokens - cached,
      outputTokens,
      durationSeconds: optional(row, 'duration'),
      requests: optional(row, 'requests'),
      concurrencyLimit: limit,
      flaggedOverload: overloadFlag(row),
    },
    optional(row, 'replicas') ?? defaultReplicas,
  );
}

function overloadFlag(row: Fields): boolean {
  if (!row.has('overload')) return false;
  const flag = row.text('overload')?.toLowerCase();
  if (flag === 'true' || flag === '1') return true;
  if (flag === 'false' || flag === '0') return false;
  throw invalid(row.place, `overload is ${JSON.stringify(flag)}`, 'Expected true or false');
}

function find(row: Fields, quantity: Quantity): { name: string; factor: number } | undefined {
  for (const { names, factor } of columns[quantity]) {
    const name = names.find((candidate) => row.has(candidate));
    if (name !== undefined) return { name, factor };
  }
  return undefined;
}

function optional(row: Fields, quantity: Quantity): number | undefined {
  const column = find(row, quantity);
  return column === undefined ? undefined : row.positive(column.name) * column.factor;
}

/** `documented` is the quantity whose names the error tells. */
function required(row: Fields, quantity: Quantity, documented: Quantity = quantity): number {
  const value = optional(row, quantity);
  if (value === undefined) {
    throw missing(row, documented);
  }
  return value;
}

function missing(row: Fields, quantity: Quantity): WardropError {
  const known = columns[quantity].flatMap(({ names }) => names);
  const empty = row.names().find((name) => known.includes(name));
  if (empty !== undefined) return invalid(row.place, `${empty} is empty`, 'Rerun that stage or leave it out');
  const meant = row.names().find((name) => !isKnown(name) && closest(name, known) !== undefined);
  const remedy = meant === undefined ? '' : `Is ${meant} meant to be ${closest(meant, known)}? `;
  return invalid(
    row.place,
    `${known[0]} is missing`,
    `${remedy}Add a column named one of ${namesOf(quantity)}`,
  );
}

function isKnown(name: string): boolean {
  return Object.values(columns).some((column) => column.some(({ names }) => names.includes(name)));
}

function namesOf(quantity: Quantity): string {
  return columns[quantity].flatMap(({ names }) => names).join(', ');
}

interface CsvRow {
  readonly line: number;
  readonly cells: readonly string[];
}

/** RFC 4180 without line breaks inside quotes, which a table of numbers has no use for. Empty lines are skipped. */
function csvRows(file: string, text: string): CsvRow[] {
  return text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((content, index) => ({ content, line: index + 1 }))
    .filter(({ content }) => content.trim() !== '')
    .map(({ content, line }) => ({ line, cells: csvCells(`${file}:${line}`, content) }));
}

function csvCells(place: string, content: string): string[] {
  const cells: string[] = [];
  let rest = content;
  for (;;) {
    const cell = /^\s*"((?:[^"]|"")*)"\s*(?=,|$)|^[^",]*(?=,|$)/.exec(rest);
    if (cell === null) {
      throw invalid(place, 'has an unclosed or misplaced quote', 'Mend the line or leave it out');
    }
    cells.push(cell[1] === undefined ? cell[0] : cell[1].replaceAll('""', '"'));
    rest = rest.slice(cell[0].length);
    if (rest === '') return cells;
    rest = rest.slice(1);
  }
}
