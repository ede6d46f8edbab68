import { envoysOf, type Scenario } from '../scenario.js';
import type { Conversation, RoutedRequest } from './policy.js';

/** What an Envoy knows of a conversation: its last turn that came this way. */
export interface LastTurn {
  /** -1 before the first. */
  readonly engine: number;
  /** Prompt and answer. */
  readonly tokens: number;
}

const NONE: LastTurn = { engine: -1, tokens: 0 };

/** A table of conversations in each Envoy; turns that came through another one are unknown to it. */
export class SessionTable {
  readonly #byEnvoy: readonly WeakMap<Conversation, LastTurn>[];

  constructor(scenario: Pick<Scenario, 'frontends'>) {
    this.#byEnvoy = envoysOf(scenario).map(() => new WeakMap());
  }

  last({ envoy, conversation }: RoutedRequest): LastTurn {
    return this.#byEnvoy[envoy]!.get(conversation) ?? NONE;
  }

  note({ envoy, conversation, promptTokens, turn }: RoutedRequest, engine: number): void {
    this.#byEnvoy[envoy]!.set(conversation, { engine, tokens: promptTokens + turn.outputTokens });
  }
}
