import { describe, expect, it } from 'vitest';
import { ControlPlane } from './control-plane.js';
import { createCollection, createResource, following, type View } from './resource.js';
import type { Response } from './session.js';
import type { Protocol } from './subscription.js';
import { EXTENSION_TYPE, LISTENER_TYPE } from './type-url.js';

const LONG_MS = 10_001;

const node = { id: 'n', cluster: '', region: '', metadata: {}, userAgent: '', userAgentVersion: '' };

/** `x` follows `x-next`; the listener is of the same version. */
function viewOf(version: string): View {
  const of = (name: string) => createResource(name, Buffer.from(`${name} ${version}`));
  return new Map([
    [EXTENSION_TYPE, createCollection([of('x-next'), following(of('x'), 'x-next')])],
    [LISTENER_TYPE, createCollection([of('l')])],
  ]);
}

/** A server and a client, which accepts what it gets unless told otherwise. */
class Site {
  isReady = false;
  nowMs = 0;
  refuses: string | undefined;
  readonly plane = new ControlPlane({
    resolveFrontend: () => 'f',
    isReady: () => this.isReady,
    now: () => this.nowMs,
  });
  /** What came since last looked. */
  #news: string[] = [];
  #connection = this.#connect();
  #node: typeof node | undefined = node;
  #names: readonly string[] = [];

  constructor(
    readonly protocol: Protocol,
    version: string,
  ) {
    this.publish(version);
  }

  publish(version: string): void {
    this.plane.setResources('f', { viewOf: () => viewOf(version) });
  }

  /** Asks for filters of these names, and for all listeners; `held`: version of what it has from an earlier stream. */
  ask(names: readonly string[], held?: string): string[] {
    this.#names = names;
    const resources = held === undefined ? undefined : viewOf(held).get(EXTENSION_TYPE)!;
    const initialVersions = Object.fromEntries(
      [...(resources?.resources.values() ?? [])].map(({ name, version }) => [name, version]),
    );
    this.#send(EXTENSION_TYPE, '', {
      heldVersion: resources?.version ?? '',
      subscribe: names,
      initialVersions,
    });
    this.#send(LISTENER_TYPE, '', { heldVersion: '', subscribe: [], initialVersions: {} });
    return this.news();
  }

  /** What came since last looked, in order. */
  news(): string[] {
    this.plane.goOn();
    return this.#news.splice(0);
  }

  reconnect(): void {
    this.#connection.close();
    this.#connection = this.#connect();
    this.#node = node;
  }

  #connect() {
    const later: Response[] = [];
    let isAnswering = false;
    return this.plane.connect(this.protocol, (response) => {
      later.push(response);
      if (isAnswering) return;
      isAnswering = true;
      // As a client does, when the server has sent all that it has to send by now.
      queueMicrotask(() => {
        isAnswering = false;
        for (const each of later.splice(0)) this.#answer(each);
      });
    });
  }

  #answer({ typeUrl, nonce, resources, version }: Response): void {
    const texts = resources.map(({ any }) => Buffer.from(any).toString());
    this.#news.push(...texts);
    const isRefused = this.refuses !== undefined && texts.includes(this.refuses);
    this.#send(typeUrl, nonce, { heldVersion: version, subscribe: [], initialVersions: {}, isRefused });
  }

  #send(
    typeUrl: string,
    responseNonce: string,
    {
      heldVersion,
      subscribe,
      initialVersions,
      isRefused = false,
    }: {
      heldVersion: string;
      subscribe: readonly string[];
      initialVersions: Record<string, string>;
      isRefused?: boolean;
    },
  ): void {
    const common = {
      ...(this.#node && { node: this.#node }),
      typeUrl,
      responseNonce,
      ...(isRefused && { error: 'no' }),
    };
    this.#node = undefined;
    const names = typeUrl === EXTENSION_TYPE ? this.#names : [];
    if (this.protocol === 'sotw') {
      this.#connection.receive({ ...common, versionInfo: heldVersion, resourceNames: names });
    } else {
      this.#connection.receive({ ...common, subscribe, unsubscribe: [], initialVersions });
    }
  }
}

/** Lets the client answer all that it was sent. */
const answered = () => new Promise((resolve) => setImmediate(resolve));

describe.each<Protocol>(['sotw', 'delta'])('by %s, what follows another resource', (protocol) => {
  const start = async (names = ['x', 'x-next']) => {
    const site = new Site(protocol, '1');
    site.ask(names);
    await answered();
    return site;
  };

  it('comes with it to a client that has neither', async () => {
    const site = await start();
    expect(site.news()).toEqual(['x 1', 'x-next 1', 'l 1']);
  });

  it('comes in another version once the client is ready with that, and what comes after it waits, too', async () => {
    const site = await start();
    site.news();
    site.publish('2');
    await answered();
    expect(site.news()).toEqual(['x-next 2']);
    expect(site.plane.isSettled('f')).toBe(false);
    site.isReady = true;
    expect(site.news()).toEqual([]);
    await answered();
    expect(site.news()).toEqual(['x 2', 'l 2']);
    expect(site.plane.isSettled('f')).toBe(true);
  });

  it('comes after it at once where the client is ready already', async () => {
    const site = await start();
    site.isReady = true;
    site.news();
    site.publish('2');
    await answered();
    expect(site.news()).toEqual(['x-next 2', 'x 2', 'l 2']);
  });

  it('waits for nothing where the client does not ask for that', async () => {
    const site = await start(['x']);
    site.publish('2');
    await answered();
    expect(site.news()).toEqual(['x 1', 'l 1', 'x 2', 'l 2']);
  });

  it('waits for a client that reconnects with what an earlier server gave it', async () => {
    const site = await start();
    site.news();
    site.publish('2');
    await answered();
    site.news();
    site.reconnect();
    site.ask(['x', 'x-next'], '1');
    await answered();
    expect(site.news()).toEqual(['x-next 2', 'l 2']);
    site.isReady = true;
    site.news();
    await answered();
    expect(site.news()).toEqual(['x 2']);
  });

  it.each([undefined, 'x-next 2'])(
    'waits for some seconds at most, also where %s is refused',
    async (refused) => {
      const site = await start();
      site.news();
      site.refuses = refused;
      site.publish('2');
      await answered();
      expect(site.news()).toEqual(['x-next 2']);
      site.nowMs += LONG_MS;
      site.news();
      await answered();
      expect(site.news()).toEqual(['x 2', 'l 2']);
      // And anew for the next version.
      site.publish('3');
      await answered();
      expect(site.news()).toEqual(['x-next 3']);
    },
  );

  it('that was refused does not keep its successor from coming when that is better', async () => {
    const site = new Site(protocol, '1');
    site.refuses = 'x 1';
    site.ask(['x', 'x-next']);
    await answered();
    site.publish('2');
    await answered();
    expect(site.news()).toEqual(['x 1', 'x-next 1', 'l 1', 'x 2', 'x-next 2', 'l 2']);
  });
});
