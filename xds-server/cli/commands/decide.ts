import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { DecisionView } from '../../admin/views/decision-view.js';
import { WardropError } from '../../errors.js';
import { messageOf } from '../../message-of.js';
import { percent } from '../../percent.js';
import { ask, type SourceOptions, withSource } from '../source.js';
import { UsageError } from '../usage-error.js';

interface DecideOptions extends SourceOptions {
  readonly frontend: string;
  readonly header?: readonly string[];
  readonly body?: string;
  readonly method: string;
  readonly path: string;
  readonly json?: boolean;
}

export function registerDecide(program: Command): void {
  withSource(
    program
      .command('decide')
      .summary('say what the filter would do with a request, and why')
      .description(
        'Run the filter on a request that is not sent, over the snapshot in force: which engine it would go to, or ' +
          'what it would be answered. What one Envoy knows by itself, such as its requests in flight, is left out.',
      )
      .requiredOption('--frontend <id>', 'frontend')
      .option('--header <header>', "header, such as 'x-session-id: s1'; may be repeated", append)
      .option('--body <file>', 'file with the body, - for standard input (default of a POST: {})')
      .option('--method <method>', 'method', methodOf, 'POST')
      .option('--path <path>', 'path', pathOf, '/v1/chat/completions')
      .option('--json', 'print JSON'),
  ).action(async (options: DecideOptions) => {
    const { frontend, method, path } = options;
    const body = await bodyOf(options);
    const headers = withLength((options.header ?? []).map(headerOf), body);
    const question = {
      frontend,
      method,
      path,
      headers,
      body: body.toString('base64'),
      bodyEncoding: 'base64',
    };
    const answer = await ask(options, '/v1/decide', { method: 'POST', body: question });
    const view = JSON.parse(answer) as DecisionView;
    console.log(options.json === true ? JSON.stringify(view, null, 2) : decisionText(view));
  });
}

function append(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function methodOf(text: string): string {
  if (/^[A-Z]{1,20}$/.test(text)) return text;
  throw new UsageError('--method: expected one such as POST, in capitals');
}

function pathOf(text: string): string {
  if (/^\/[\x21-\x7e]*$/.test(text)) return text;
  throw new UsageError(
    '--path: expected one that begins with /, without spaces and encoded, such as /v1/completions',
  );
}

/** The message does not repeat the header, which may hold a secret. */
function headerOf(text: string, index: number): [name: string, value: string] {
  const [, name, value] = /^([^\s:]+):\s*([^\r\n]*?)\s*$/.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return [name, value];
  throw new WardropError('WARDROP_QUERY_INVALID', `--header number ${index + 1}: expected 'name: value'`);
}

async function bodyOf({ body, method }: DecideOptions): Promise<Buffer> {
  if (body === undefined) return Buffer.from(method === 'POST' ? '{}' : '');
  try {
    return body === '-' ? await buffer(process.stdin) : await readFile(body);
  } catch (error) {
    throw new WardropError('WARDROP_QUERY_INVALID', `--body: ${body} cannot be read: ${messageOf(error)}`);
  }
}

/** Clients say how long the body is. */
function withLength(headers: readonly [name: string, value: string][], body: Buffer) {
  const isSaid = headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name));
  return body.length === 0 || isSaid ? headers : [...headers, ['content-length', `${body.length}`]];
}

function decisionText(view: DecisionView): string {
  const { answer, engine, weight, endpoints } = view;
  const share = weight === null ? '' : ` (owns ${percent(weight)} of the pool's keys)`;
  const code = answer?.code == null ? '' : ` ${answer.code}`;
  const rows: (readonly [label: string, text: string | number | null])[] = [
    ['answer', answer && `${answer.status}${code}: ${answer.message}`],
    ['pool', view.pool],
    ['engine', engine && `${engine}${share}`],
    ['reason', view.reason],
    ['mode', view.mode],
    ['endpoints', endpoints.map(({ address, engine }) => `${address} (${engine})`).join(', ') || null],
    ['retries', view.retries],
    ['route', view.route],
    ['plan', view.planId],
  ];
  const lines = rows.flatMap(([label, text]) => (text === null ? [] : [`${label.padEnd(11)}${text}`]));
  return [...lines, '', view.note].join('\n');
}
