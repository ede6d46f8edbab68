import { spawn } from 'node:child_process';

export interface Load {
  readonly port: number;
  readonly requests: number;
  readonly connections: number;
  /** Size of the JSON body. */
  readonly bodyBytes: number;
  /** Model that the body names. */
  readonly model: string;
  /** Further headers; `conv-00000000` in a value is replaced by the conversation's key. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the key is in the header `x-conversation-id`, besides the body. */
  readonly keyHeader: boolean;
  /** Events of a streamed answer, 0 for an answer in one piece. */
  readonly chunks: number;
}

/** Microseconds. */
export interface LoadResult {
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
}

/** Runs the load generator to its end; throws when a request was not answered with 200. */
export async function runLoad(command: readonly string[], load: Load): Promise<LoadResult> {
  const [program, ...first] = command;
  const child = spawn(program!, [...first, ...argumentsOf(load)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (data: Buffer) => {
    output += data.toString();
  });
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (status !== 0) throw new Error(`the load generator ended with status ${status}`);
  return readResult(output, load.requests);
}

export function argumentsOf(load: Load): string[] {
  const headers = Object.entries(load.headers).map(([name, value]) => `${name}: ${value}`);
  return [
    ...['-addr', `127.0.0.1:${load.port}`, '-n', `${load.requests}`, '-c', `${load.connections}`],
    ...['-body', `${load.bodyBytes}`, '-model', load.model],
    ...(headers.length ? ['-H', headers.join('|')] : []),
    ...(load.keyHeader ? [] : ['-no-key-header']),
    ...(load.chunks ? ['-path', `/v1/chat/completions?chunks=${load.chunks}`] : []),
  ];
}

/** Checks and reads the generator's line. */
export function readResult(output: string, wanted: number): LoadResult {
  const { n, errs, codes, p50, p99 } = JSON.parse(output) as {
    n: number;
    errs: number;
    codes: Record<string, number>;
    p50: number;
    p99: number;
  };
  if (errs || n !== wanted || codes['200'] !== wanted) {
    throw new Error(`of ${wanted} requests ${errs} failed, statuses were ${JSON.stringify(codes)}`);
  }
  return { requests: n, p50, p99 };
}
