import { readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { WardropError } from '../../errors.js';
import { messageOf } from '../../message-of.js';
import { renderHtml, renderSvg } from './chart.js';
import { fitProfile } from './fit.js';
import type { RowFilter } from './readers/csv.js';
import { readBenchmark } from './readers/read.js';
import { renderReport } from './report.js';
import type { FitResult } from './result.js';
import { profileYaml } from './yaml.js';

export interface FitOptions {
  /** Benchmark files: one a stage, or several stages in one. */
  readonly files: readonly string[];
  /** Profile id; by default the name of the first file without its ending. */
  readonly id?: string | undefined;
  /** Equal replicas that shared the load; default 1. A CSV column `replicas` goes before it. */
  readonly replicas?: number | undefined;
  /** CSV rows to keep; all by default. */
  readonly where?: readonly RowFilter[] | undefined;
  /** Where the profile goes as YAML; nothing is written without a profile. */
  readonly out?: string | undefined;
  /** Where the drawing goes as SVG. */
  readonly svg?: string | undefined;
  /** Where drawing and report go as one page. */
  readonly html?: string | undefined;
}

/**
 * Reads the files, fits, and writes what the options name. Throws WARDROP_BENCHMARK_INVALID for files that cannot be
 * read; data that carry no profile are no error but a result without one.
 */
export async function runFit(options: FitOptions): Promise<FitResult> {
  const id = profileId(options);
  const observations = [];
  for (const file of options.files) {
    const readOptions = { replicas: options.replicas ?? 1, filters: options.where ?? [] };
    observations.push(...readBenchmark(file, await readText(file), readOptions));
  }
  const result = fitProfile(id, observations);
  const yaml = profileYaml(result, fileNames(options.files));
  if (options.out !== undefined && yaml !== undefined) await write(options.out, yaml);
  if (options.svg !== undefined) await write(options.svg, renderSvg(result));
  if (options.html !== undefined) await write(options.html, renderHtml(result));
  return result;
}

/** Adds `wardrop fit`. Without a profile the command prints its report and throws WARDROP_BENCHMARK_INVALID. */
export function registerFit(program: Command): void {
  program
    .command('fit')
    .summary('fit an engine profile from benchmark files')
    .description(
      'Fit an engine profile (work, TTFT and TBOT over utilisation) from a sweep of request rates. Reads results of ' +
        'vllm bench serve, sglang.bench_serving, GenAI-Perf, AIPerf and inference-perf, and CSV.',
    )
    .argument('<files...>', 'benchmark files: one a stage, or several stages in one')
    .option('--id <name>', 'profile id (default: name of the first file)')
    .option('--replicas <n>', 'equal replicas that shared the load', positiveInteger, 1)
    .option('--where <column=value>', 'CSV rows to keep; may be repeated', addFilter)
    .option('--out <file>', 'write the profile as YAML (default: print it after the report)')
    .option('--svg <file>', 'draw curves and measurements as SVG')
    .option('--html <file>', 'write drawing and report as one HTML page')
    .action(async (files: string[], options: Omit<FitOptions, 'files'>) => {
      const result = await runFit({ ...options, files });
      process.stdout.write(renderReport(result));
      const yaml = profileYaml(result, fileNames(files));
      if (yaml === undefined) {
        throw new WardropError(
          'WARDROP_BENCHMARK_INVALID',
          'These data carry no profile; the warnings of the report say what to measure.',
        );
      }
      if (options.out === undefined) process.stdout.write(`\n${yaml}`);
    });
}

function fileNames(files: readonly string[]): string[] {
  return files.map((file) => basename(file));
}

/** As the configuration wants ids. */
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

function profileId({ id, files }: FitOptions): string {
  const name = id ?? basename(files[0]!).replace(/\.[^.]*$/, '');
  if (idPattern.test(name)) return name;
  throw new WardropError(
    'WARDROP_PROFILE_INVALID',
    `${JSON.stringify(name)} cannot be a profile id. Give --id up to 63 letters, digits, dots, underscores and ` +
      'hyphens, starting with a letter or digit.',
  );
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new WardropError('WARDROP_BENCHMARK_INVALID', `${file}: cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

async function write(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    throw new WardropError('WARDROP_OUTPUT_FAILED', `${file}: cannot be written: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function positiveInteger(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('expected a whole number above 0');
}

function addFilter(text: string, filters: readonly RowFilter[] = []): RowFilter[] {
  const [, name, value] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('expected column=value');
  return [...filters, { name: name.toLowerCase(), value }];
}
