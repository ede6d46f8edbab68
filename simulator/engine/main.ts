import { Command, InvalidArgumentError } from 'commander';
import { EngineServer } from './http-server.js';
import { engineKinds, speedUp } from './parameters.js';

interface Options {
  readonly id: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly model: [string, ...string[]];
  readonly kind: string;
  readonly speed: number;
  readonly rttMs: Map<string, number>;
}

const program = new Command('engine')
  .description('An inference engine with the HTTP interface of vLLM that computes nothing but its own load.')
  .requiredOption('--listen <host:port>', 'where to listen', parseAddress)
  .option('--id <name>', 'sent as x-engine with every response', 'sim')
  .option('--model <name...>', 'model names to serve', ['demo-8b'])
  .option('--kind <name>', `one of ${Object.keys(engineKinds).join(', ')}`, parseKind, 'sim-100')
  .option('--speed <factor>', 'so many times as fast as its kind', parsePositive, 1)
  .option('--rtt-ms <peer=ms>', 'emulated round trip to a source address; repeatable', parseRtt, new Map())
  .action(run);

await program.parseAsync();

async function run(options: Options): Promise<void> {
  const server = new EngineServer({
    id: options.id,
    models: options.model,
    parameters: speedUp(engineKinds[options.kind]!, options.speed),
    oneWayDelayMs: new Map([...options.rttMs].map(([peer, ms]) => [peer, ms / 2])),
  });
  const { host, port } = options.listen;
  try {
    await server.listen(host, port);
  } catch (error) {
    program.error(`engine ${options.id} cannot listen on ${host}:${port}: ${(error as Error).message}`);
  }
  console.log(`engine ${options.id} listens on ${host.includes(':') ? `[${host}]` : host}:${port}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => server.close());
}

function parseAddress(text: string): Options['listen'] {
  const match = /^\[?(.+?)\]?:(\d{1,5})$/.exec(text);
  if (!match || Number(match[2]) > 65535) throw new InvalidArgumentError('give host:port');
  return { host: match[1]!, port: Number(match[2]) };
}

function parseKind(text: string): string {
  if (!engineKinds[text])
    throw new InvalidArgumentError(`known kinds: ${Object.keys(engineKinds).join(', ')}`);
  return text;
}

function parsePositive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('give a number above 0');
  return value;
}

function parseRtt(text: string, previous: Map<string, number>): Map<string, number> {
  const match = /^(.+)=(\d+(?:\.\d+)?)$/.exec(text);
  if (!match) throw new InvalidArgumentError('give ADDRESS=MILLISECONDS');
  return new Map(previous).set(match[1]!, Number(match[2]));
}
