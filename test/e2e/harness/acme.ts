import { readFileSync, writeFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { type EnvoyHandle, Mesh } from './mesh.js';
import { type Posted, post } from './post.js';
import { loopback6, StubEngine } from './stub-engine.js';

export const BASE = 'acme-chat-8b';
export const ADAPTER = 'acme-legal';
/** Longest prompt of the small context, in tokens of 4 bytes. */
export const SMALL_CONTEXT = 16_000;
export const MAX_BODY_BYTES = 3_000_000;
export const NEEDS = {
  'eu-only': { when: { header: { 'x-data-residency': 'eu' } }, engines: { residency: 'eu' } },
  'us-only': { when: { header: { 'x-data-residency': 'us' } }, engines: { residency: 'us' } },
  'long-context': { when: { totalTokens: SMALL_CONTEXT }, engines: { context: '128k' } },
  embeddings: { when: { path: '/v1/embeddings' }, refuse: true },
  'too-long': { when: { promptTokens: 128_000 }, refuse: true },
};

export interface Ask {
  readonly key?: string;
  readonly prompt?: string;
  /** Further fields of the body. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

/**
 * A fleet whose engines may not all serve everything: e1 and e2 in the EU, e3 in the US; e1 with a small context, and
 * an adapter on e2 alone.
 */
export class Acme {
  readonly stubs = {
    e1: new StubEngine('e1'),
    e2: new StubEngine('e2'),
    e3: new StubEngine('e3', undefined, loopback6),
  };
  /** Listens where no configuration points to. */
  readonly stranger = new StubEngine('stranger');
  readonly all = [...Object.values(this.stubs), this.stranger];
  mesh!: Mesh;
  envoy!: EnvoyHandle;

  /** With one Envoy of two workers. */
  static async start(): Promise<Acme> {
    const acme = new Acme();
    try {
      await acme.#start();
    } catch (error) {
      await acme.stop();
      throw error;
    }
    return acme;
  }

  async #start(): Promise<void> {
    const { e1, e2, e3 } = this.stubs;
    await Promise.all(this.all.map((stub) => stub.start()));
    this.mesh = await Mesh.start({
      engines: [
        engine('e1', e1, [BASE], { residency: 'eu', context: '16k' }),
        engine('e2', e2, [BASE, ADAPTER], { residency: 'eu', context: '128k' }),
        engine('e3', e3, [BASE], { residency: 'us', context: '128k' }),
      ],
      rttMs: { west: { e1: 2, e2: 2, e3: 2 } },
      // Enough for all that is sent here at once, so that nothing is shed before a test wants it.
      profiles: { stub: { requestsPerSecond: 1_000 } },
      demand: { west: { models: { [BASE]: { requestsPerSecond: 60 } } } },
      policy: {
        bounds: ['e1', 'e2', 'e3'].map((id) => ({ frontend: 'west', pool: BASE, engine: id, min: 0.3 })),
      },
      config: {
        needs: NEEDS,
        aliases: { 'acme-chat': BASE },
        filter: { maxBodyBytes: MAX_BODY_BYTES },
      },
    });
    this.envoy = await this.mesh.startEnvoy('west', { concurrency: 2 });
  }

  async stop(): Promise<void> {
    await this.mesh?.stop();
    await Promise.all(this.all.map((stub) => stub.kill()));
  }

  /** Requests that reached an engine. */
  get attempts(): number {
    return this.all.reduce((sum, stub) => sum + stub.attempts.length, 0);
  }

  ask(
    model: string | undefined,
    { key, prompt = 'hello', headers = {}, fields = {} }: Ask = {},
  ): Promise<Posted> {
    const messages = [{ role: 'user', content: prompt }];
    const body = Buffer.from(JSON.stringify({ messages, prompt_cache_key: key, model, ...fields }));
    return post(`${this.envoy.url}/v1/chat/completions`, { pieces: [body], headers });
  }

  /** Replaces sections of the configuration. */
  reconfigure(change: object): void {
    const { configFile } = this.mesh;
    writeFileSync(configFile, stringify({ ...parse(readFileSync(configFile, 'utf8')), ...change }));
  }
}

function engine(
  id: string,
  stub: StubEngine,
  models: readonly string[],
  labels: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return { id, region: 'west', models, labels, profile: 'stub', endpoints: [stub.address] };
}
