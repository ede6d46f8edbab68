import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Connection, ControlPlane } from './control-plane.js';
import { createCollection, createResource, type View } from './resource.js';
import type { Response } from './session.js';
import type { Protocol } from './subscription.js';
import {
  CLUSTER_TYPE,
  ENDPOINTS_TYPE,
  isFullState,
  LISTENER_TYPE,
  ROUTE_TYPE,
  referencedType,
} from './type-url.js';

/** Content by type and name. */
type State = Record<string, Record<string, string>>;

const NAMES = ['a', 'b', 'c', 'd'];
const TYPES = [CLUSTER_TYPE, ENDPOINTS_TYPE, LISTENER_TYPE, ROUTE_TYPE];
const node = {
  id: 'n',
  cluster: '',
  region: '',
  metadata: {},
  userAgent: '',
  userAgentVersion: '',
};

function viewOf(state: State): View {
  return new Map(
    TYPES.map((type) => {
      const resources = Object.entries(state[type] ?? {}).map(([name, content]) =>
        createResource(name, Buffer.from(`${name}=${content}`), isFullState(type) ? [name] : []),
      );
      return [type, createCollection(resources)];
    }),
  );
}

/** A client that keeps what it accepts, and that checks on every response what any client may rely on. */
class ModelClient {
  readonly held = new Map(TYPES.map((type) => [type, new Map<string, string>()]));
  readonly wanted = new Map<string, Set<string> | 'all'>();
  readonly #connection: Connection;
  readonly #inFlight = new Map<string, Response>();
  readonly #nonces = new Map<string, string>();
  readonly #refused = new Map<string, string>();
  /** Types in flight that are due again because of what was sent or asked for after them. */
  readonly #excused = new Set<string>();
  #node: typeof node | undefined = node;

  constructor(
    plane: ControlPlane,
    private readonly protocol: Protocol,
  ) {
    this.#connection = plane.connect(protocol, (response) => this.#receive(response));
  }

  get typesInFlight(): string[] {
    return [...this.#inFlight.keys()];
  }

  #receive(response: Response): void {
    const { typeUrl, resources, removed } = response;
    expect(this.#inFlight.has(typeUrl), 'one response in flight per type').toBe(false);
    const names = [...resources.map(({ name }) => name), ...removed];
    expect(new Set(names).size, 'no name twice in a response').toBe(names.length);
    for (const name of names) expect(this.wants(typeUrl, name), `${name} was asked for`).toBe(true);
    expect(contentKey(response), 'not what was just refused').not.toBe(this.#refused.get(typeUrl));
    this.#inFlight.set(typeUrl, response);
    // With a new cluster, endpoints that were refused before get another chance; so do routes with a new listener.
    const referenced = referencedType.get(typeUrl);
    if (referenced === undefined) return;
    this.#refused.delete(referenced);
    if (this.#inFlight.has(referenced)) this.#excused.add(referenced);
  }

  wants(type: string, name: string): boolean {
    const wanted = this.wanted.get(type);
    return wanted === 'all' || wanted?.has(name) === true;
  }

  /** Replaces what the client asks for; an empty first request is the default wildcard where the type has one. */
  want(type: string, names: Set<string> | 'all'): void {
    const before = this.wanted.get(type) ?? new Set<string>();
    const isDefault = isFullState(type) && !this.wanted.has(type) && names !== 'all' && names.size === 0;
    const next = isDefault ? 'all' : names;
    this.wanted.set(type, next);
    this.#refused.delete(type);
    if (this.#inFlight.has(type)) this.#excused.add(type);
    const held = this.held.get(type)!;
    for (const name of held.keys()) if (!this.wants(type, name)) held.delete(name);
    const list = (names: Set<string> | 'all') => (names === 'all' ? ['*'] : [...names]);
    const added = list(next).filter((name) => !list(before).includes(name));
    const dropped = list(before).filter((name) => !list(next).includes(name));
    this.#request(type, this.#nonces.get(type) ?? '', undefined, added, dropped);
  }

  /** `apply` is what the client does with the news before it acknowledges. */
  accept(type: string, apply: () => void = () => {}): void {
    const response = this.#inFlight.get(type);
    if (response === undefined) return;
    const held = this.held.get(type)!;
    if (this.protocol === 'sotw' && isFullState(type)) held.clear();
    for (const { name, any } of response.resources) {
      if (this.wants(type, name)) held.set(name, Buffer.from(any).toString());
    }
    for (const name of response.removed) held.delete(name);
    this.#refused.delete(type);
    apply();
    this.#answer(type, response, undefined);
  }

  refuse(type: string): void {
    const response = this.#inFlight.get(type);
    if (response === undefined) return;
    if (!this.#excused.has(type)) this.#refused.set(type, contentKey(response));
    // Nobody can insist on what is gone.
    const held = this.held.get(type)!;
    for (const name of response.removed) held.delete(name);
    if (this.protocol === 'sotw' && isFullState(type)) {
      const told = response.resources.map((resource) => resource.name);
      for (const name of held.keys()) if (!told.includes(name)) held.delete(name);
    }
    this.#answer(type, response, 'refused');
  }

  #answer(type: string, response: Response, error: string | undefined): void {
    this.#inFlight.delete(type);
    this.#excused.delete(type);
    this.#nonces.set(type, response.nonce);
    this.#request(type, response.nonce, error, [], []);
  }

  #request(
    typeUrl: string,
    responseNonce: string,
    error: string | undefined,
    subscribe: string[],
    unsubscribe: string[],
  ): void {
    const wanted = this.wanted.get(typeUrl)!;
    const common = {
      typeUrl,
      // With a response in flight, its nonce is the newest that the client has seen.
      responseNonce,
      ...(this.#node !== undefined && { node: this.#node }),
      ...(error !== undefined && { error }),
    };
    this.#node = undefined;
    if (this.protocol === 'delta') {
      this.#connection.receive({ ...common, subscribe, unsubscribe, initialVersions: {} });
    } else {
      const resourceNames = wanted === 'all' ? ['*'] : [...wanted];
      this.#connection.receive({ ...common, versionInfo: '', resourceNames });
    }
  }
}

const contentKey = ({ resources, removed }: Response) =>
  JSON.stringify([resources.map(({ name, version }) => [name, version]), removed]);

const arbitraryNames = fc.uniqueArray(fc.constantFrom(...NAMES));
const arbitraryContent = fc.dictionary(fc.constantFrom(...NAMES), fc.constantFrom('1', '2', '3'));
const arbitraryType = fc.constantFrom(...TYPES);
const arbitraryStep = fc.oneof(
  fc.record({ kind: fc.constant('publish' as const), type: arbitraryType, content: arbitraryContent }),
  fc.record({
    kind: fc.constant('want' as const),
    type: arbitraryType,
    names: fc.oneof(arbitraryNames, fc.constant('all' as const)),
  }),
  fc.record({ kind: fc.constant('accept' as const), type: arbitraryType }),
  fc.record({ kind: fc.constant('refuse' as const), type: arbitraryType }),
);

describe.each(['sotw', 'delta'] as const)('a client of the %s protocol', (protocol) => {
  it('has all that it wants, and no more, once it has accepted everything, whatever happened before', () => {
    fc.assert(
      fc.property(fc.array(arbitraryStep, { maxLength: 40 }), (steps) => {
        const plane = new ControlPlane({ now: () => 0, resolveFrontend: () => 'f' });
        const state: State = {};
        const publish = () => {
          const view = viewOf(state);
          plane.setResources('f', { viewOf: () => view });
        };
        publish();
        const client = new ModelClient(plane, protocol);
        for (const step of steps) {
          if (step.kind === 'publish') {
            state[step.type] = step.content;
            publish();
          } else if (step.kind === 'want') {
            // A state-of-the-world client doesn't change its mind in the middle of an answer: see the nonce rule.
            if (protocol === 'sotw' && client.typesInFlight.includes(step.type)) continue;
            client.want(step.type, step.names === 'all' ? 'all' : new Set(step.names));
          } else {
            client[step.kind](step.type);
          }
        }
        // What was refused counts again with new content only.
        for (const type of TYPES) {
          state[type] = Object.fromEntries(
            Object.entries(state[type] ?? {}).map(([name, content]) => [name, `${content}'`]),
          );
        }
        publish();
        for (let i = 0; client.typesInFlight.length > 0; i++) {
          expect(i, 'comes to rest').toBeLessThan(50);
          for (const type of client.typesInFlight) client.accept(type);
        }
        for (const type of client.wanted.keys()) {
          const expected = Object.entries(state[type] ?? {}).filter(([name]) => client.wants(type, name));
          const held = [...client.held.get(type)!];
          // Here absence says nothing: what is gone stays with the client.
          const known =
            protocol === 'sotw' && !isFullState(type) ? held.filter(([n]) => state[type]?.[n]) : held;
          expect(known.sort()).toEqual(
            expected.map(([name, content]) => [name, `${name}=${content}`]).sort(),
          );
        }
        expect(plane.isSettled('f')).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('never holds a route to a cluster that it lacks, or whose endpoints it lacks', () => {
    const arbitraryStates = fc.array(arbitraryNames, { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(arbitraryStates, fc.infiniteStream(fc.nat()), (publications, choices) => {
        const plane = new ControlPlane({ now: () => 0, resolveFrontend: () => 'f' });
        const client = new ModelClient(plane, protocol);
        const step = () => {
          const types = client.typesInFlight;
          const type = types[choices.next().value! % types.length]!;
          client.accept(type, () => {
            // As Envoy does: it asks for the endpoints of its clusters, then acknowledges these.
            if (type !== CLUSTER_TYPE) return;
            client.want(ENDPOINTS_TYPE, new Set(client.held.get(CLUSTER_TYPE)!.keys()));
          });
          const routes = [...client.held.get(ROUTE_TYPE)!.values()];
          for (const cluster of routes.flatMap((route) => route.split('=')[1]!.split(',').filter(Boolean))) {
            expect([...client.held.get(CLUSTER_TYPE)!.keys()]).toContain(cluster);
            expect([...client.held.get(ENDPOINTS_TYPE)!.keys()]).toContain(cluster);
          }
        };
        for (const [index, clusters] of publications.entries()) {
          const same = Object.fromEntries(clusters.map((name) => [name, '1']));
          const view = viewOf({
            [CLUSTER_TYPE]: same,
            [ENDPOINTS_TYPE]: same,
            [LISTENER_TYPE]: { l: '1' },
            [ROUTE_TYPE]: { l: clusters.join() },
          });
          plane.setResources('f', { viewOf: () => view });
          if (index === 0) {
            client.want(CLUSTER_TYPE, 'all');
            while (client.typesInFlight.length > 0) step();
            client.want(LISTENER_TYPE, 'all');
            client.want(ROUTE_TYPE, new Set(['l']));
          }
          for (let i = choices.next().value! % 6; i > 0 && client.typesInFlight.length > 0; i--) step();
        }
        while (client.typesInFlight.length > 0) step();
        expect(plane.isSettled('f')).toBe(true);
      }),
    );
  });
});

it('what Envoys of a frontend see is forgotten with the frontend, and those that are connected keep what they have', () => {
  const plane = new ControlPlane({ resolveFrontend: () => 'f', now: () => 0 });
  const view = viewOf({ [CLUSTER_TYPE]: { a: '1' } });
  plane.setResources('f', { viewOf: () => view });
  const clients = [new ModelClient(plane, 'delta'), new ModelClient(plane, 'delta')];
  const heldAfter = (at: number) => {
    clients[at]!.want(CLUSTER_TYPE, 'all');
    clients[at]!.accept(CLUSTER_TYPE);
    return [...clients[at]!.held.get(CLUSTER_TYPE)!.keys()];
  };
  plane.retain(new Set(['f']));
  expect(heldAfter(0)).toEqual(['a']);
  plane.retain(new Set(['g']));
  expect(heldAfter(1)).toEqual([]);
  expect([...clients[0]!.held.get(CLUSTER_TYPE)!.keys()]).toEqual(['a']);
});
