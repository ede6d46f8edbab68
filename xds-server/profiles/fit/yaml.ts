import { Document } from 'yaml';
import type { FitResult } from './result.js';

/** Far more digits than a benchmark carries, and few enough to read. */
const significantDigits = 6;

/**
 * The profile as a `profiles:` section of the configuration, with where it comes from and its warnings as comments;
 * undefined where there is no profile. `sources` are the names of the benchmark files.
 */
export function profileYaml(result: FitResult, sources: readonly string[]): string | undefined {
  if (result.profile === undefined) return undefined;
  const { id, ...parameters } = result.profile;
  const document = new Document({ profiles: { [id]: roundAll(parameters) } });
  document.commentBefore = [
    `Fitted from ${sources.join(', ')}`,
    ...result.warnings.map(({ code, message }) => `${code}: ${message}.`),
  ]
    .map((line) => ` ${line}`)
    .join('\n');
  return document.toString({ lineWidth: 0 });
}

function roundAll(value: unknown): unknown {
  if (typeof value === 'number') return Number(value.toPrecision(significantDigits));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, roundAll(inner)]));
}
