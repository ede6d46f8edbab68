import type { Command } from 'commander';
import { CONTROL_HEADER } from '../admin/control-header.js';
import { adminAddress } from '../config/admin-address.js';
import { ConfigError } from '../config/problem.js';
import { ownTarget, targetText } from '../fleet/address.js';
import type { Address } from '../fleet/fleet.js';
import { UsageError } from './usage-error.js';

/** Where a question goes. */
export interface SourceOptions {
  readonly config?: string;
  readonly url?: string;
  readonly offline?: boolean;
}

/** Adds the options that name a control server. */
export function withSource(command: Command): Command {
  return command
    .option(
      '-c, --config <file>',
      'configuration file; names the admin address of the running control server',
    )
    .option('--url <url>', 'admin address of the running control server, such as http://127.0.0.1:18002');
}

/** Adds `--offline` to those. */
export function withOfflineSource(command: Command): Command {
  return withSource(command).option(
    '--offline',
    'solve the configuration and its state file here instead, with everything ready',
  );
}

interface Question {
  readonly method?: string;
  readonly body?: object;
  readonly accept?: string;
  /** For one that is answered at once; others may need a solve or many. */
  readonly mostSeconds?: number;
}

/** Asks the running control server. */
export async function ask(options: SourceOptions, path: string, request: Question = {}): Promise<string> {
  return (await answerTo(options, path, request)).toString();
}

/** Asks the running control server for something that is no text. */
export function askForBytes(options: SourceOptions, path: string): Promise<Buffer> {
  return answerTo(options, path, { accept: 'application/octet-stream' });
}

async function answerTo(options: SourceOptions, path: string, request: Question): Promise<Buffer> {
  const base = adminUrl(options);
  let response: Response;
  let body: Buffer;
  try {
    response = await fetch(new URL(path, base), {
      method: request.method ?? 'GET',
      headers: {
        accept: request.accept ?? 'application/json',
        ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      ...(request.mostSeconds === undefined
        ? {}
        : { signal: AbortSignal.timeout(1_000 * request.mostSeconds) }),
    });
    refuseStranger(base, response);
    body = Buffer.from(await response.arrayBuffer());
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw noAnswer(base, error as Error);
  }
  if (response.ok) return body;
  throw new UsageError(messageOf(body.toString()), response.status === 400 ? 2 : 1);
}

/** What to say when `fetch` fails, which gives its reason as a cause. */
export function noAnswer(base: URL, { cause, message }: Error): UsageError {
  const reason = cause instanceof Error ? cause.message : message;
  return new UsageError(`no control server answers at ${base}: ${reason}`, 1);
}

/** @throws {UsageError} for an answer of something else than a control server */
export function refuseStranger(base: URL, { headers, status }: Response): void {
  if (headers.has(CONTROL_HEADER)) return;
  throw new UsageError(`what answers at ${base} (status ${status}) is no control server of this version`, 1);
}

/** The configuration file that an offline question needs. */
export function offlineConfig({ config }: SourceOptions): string {
  if (config === undefined) throw new UsageError('--offline needs --config');
  return config;
}

/** Where the running control server answers. */
export function adminUrl({ config, url }: SourceOptions): URL {
  if (url !== undefined) {
    if (URL.canParse(url)) return new URL(url);
    throw new UsageError(`--url: ${JSON.stringify(url)} is no URL; such as http://127.0.0.1:18002`);
  }
  if (config === undefined) throw new UsageError('say which control server: give --config or --url');
  return new URL(`http://${targetText(ownTarget(listenOf(config)))}`);
}

function listenOf(config: string): Address {
  try {
    return adminAddress(config);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new UsageError(
      `${error.message}\nWhere the control server answers is not known by that; give --url`,
    );
  }
}

function messageOf(text: string): string {
  try {
    return (JSON.parse(text) as { message: string }).message;
  } catch {
    return text;
  }
}
