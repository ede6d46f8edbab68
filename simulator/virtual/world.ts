import type { EngineRequest, Sequence } from '../engine/engine-core.js';
import type { Turn } from '../load/conversations.js';
import { Dialogue } from '../load/dialogue.js';
import { mix } from '../policies/hashing.js';
import type { EnginePage, Outcome, Policy, PolicyFactory, RoutedRequest } from '../policies/policy.js';
import { Random } from '../random.js';
import {
  envoysOf,
  type Fault,
  rowsOf,
  type Scenario,
  type ScenarioDemand,
  type ScenarioEngine,
  type ScenarioRow,
} from '../scenario.js';
import { scheduleTurns } from './arrivals.js';
import { type ConversationState, Conversations } from './conversations.js';
import { Engine } from './engine.js';
import { EventQueue } from './event-queue.js';
import { Outages } from './outages.js';
import { Probes } from './probes.js';
import { Recorder, SAMPLE_SECONDS } from './recorder.js';
import { Reports } from './reports.js';
import { TotalVariation } from './variation.js';

/** Health probes of an engine; two contrary results in a row change what is thought of it. */
const PROBE_SECONDS = 0.5;
const TICK_SECONDS = 0.25;
/** As llm-d's endpoint picker reads pages. */
const PAGE_SECONDS = 0.05;
/** OpenAI's SDKs: 0.5 s doubled up to 8 s, less up to a quarter. */
const FIRST_RETRY_SECONDS = 0.5;
const LONGEST_RETRY_SECONDS = 8;
/** An Envoy waits this long for a connection that nobody refuses. */
const CONNECT_TIMEOUT_SECONDS = 1;

/** A request of a client, over all its tries. */
interface Request extends RoutedRequest {
  readonly conversation: ConversationState;
  /** Each try comes to any Envoy of the frontend, as behind a balancer of connections. */
  envoy: number;
  /** 32 random bits that choose it. */
  readonly chance: number;
  cachedTokens: number;
  clientRetries: number;
  readonly turn: Turn;
  readonly content: EngineRequest;
  readonly firstAt: number;
  /** Of the present try; NaN before its first token. */
  firstTokenAt: number;
  sentAt: number;
  /** Weights that its present try was decided by. */
  weights: readonly number[] | undefined;
  engine: number;
  attempts: number;
  sequence: Sequence | undefined;
  /** Grows with each try, so that what belongs to an older one is recognised. */
  serial: number;
}

/** Frontends, engines, clients and a network in virtual time, and one policy that chooses engines. */
export class World {
  readonly recorder: Recorder;
  readonly #scenario: Scenario;
  readonly #queue = new EventQueue();
  readonly #engines: readonly Engine<Request>[];
  readonly #dialogue: Dialogue;
  readonly #clientRandom: Random;
  readonly #envoyRandom: Random;
  /** `[envoy][engine]`. */
  readonly #inFlight: Int32Array[];
  /** Envoys of each frontend. */
  readonly #envoys: readonly (readonly number[])[];
  /** By frontend, and the control server's. */
  readonly #probes: readonly Probes[];
  readonly #controlProbes: Probes;
  /** What each frontend last read of each engine. */
  readonly #pages: EnginePage[][];
  readonly #outages: Outages;
  readonly #conversations: Conversations;
  readonly #reports: Reports;
  readonly #rows: readonly ScenarioRow[];
  readonly #variation = new TotalVariation();
  readonly #acting = new Set<Fault>();
  readonly #endAt: number;
  readonly #seed: number;
  #policy!: Policy;
  #now = 0;
  #open = 0;

  private constructor(scenario: Scenario, seed: number) {
    this.#scenario = scenario;
    this.#seed = seed;
    this.recorder = new Recorder(scenario);
    this.#endAt = scenario.warmupSeconds + scenario.seconds;
    this.#dialogue = new Dialogue(scenario.engines[0]!.parameters.blockTokens);
    this.#clientRandom = new Random(seed, 'clients');
    this.#envoyRandom = new Random(seed, 'envoys');
    this.#conversations = new Conversations(scenario, seed);
    this.#engines = scenario.engines.map(
      ({ parameters }, index) =>
        new Engine(parameters, {
          firstToken: (request, _, at) => this.#firstToken(request, index, at),
          lastToken: (request, sequence, at) => this.#lastToken(request, index, sequence, at),
        }),
    );
    this.#probes = scenario.frontends.map(() => new Probes(scenario.engines.length));
    this.#controlProbes = new Probes(scenario.engines.length);
    this.#pages = scenario.frontends.map(() => this.#engines.map(({ page }) => page));
    this.#outages = new Outages(scenario);
    this.#rows = rowsOf(scenario);
    const frontendOf = envoysOf(scenario);
    this.#inFlight = frontendOf.map(() => new Int32Array(scenario.engines.length));
    this.#envoys = scenario.frontends.map((_, frontend) =>
      frontendOf.flatMap((other, envoy) => (other === frontend ? [envoy] : [])),
    );
    this.#reports = new Reports({
      scenario,
      queue: this.#queue,
      engines: this.#engines,
      ready: this.#controlProbes.ready,
      outages: this.#outages,
    });
  }

  /** Runs the scenario to the last answer. Requests and their times depend on the seed alone. */
  static async run(scenario: Scenario, policy: PolicyFactory, seed: number): Promise<Recorder> {
    const world = new World(scenario, seed);
    const ready = world.#probes.map((probes) => probes.ready);
    const local = { inFlight: world.#inFlight, ready, pages: world.#pages };
    const control = { ready: world.#controlProbes.ready, reaches: world.#outages.controlReaches };
    world.#policy = await policy({ scenario, seed, local, control });
    try {
      await world.#run();
    } finally {
      await world.#policy.close?.();
    }
    return world.recorder;
  }

  async #run(): Promise<void> {
    this.#scenario.frontends.forEach(({ demands }, frontend) => {
      for (const demand of demands) {
        const begin = (turn: Turn) => this.#begin(frontend, demand, turn);
        scheduleTurns(demand, this.#seed, this.#endAt, this.#queue, begin);
      }
    });
    this.#scheduleFaults();
    this.#every(PROBE_SECONDS, () => this.#probe());
    this.#every(SAMPLE_SECONDS, () => this.#sample());
    this.#every(this.#scenario.signals.periodSeconds, () => this.#reports.tell(this.#policy, this.#now));
    if (this.#policy.readsPages) this.#every(PAGE_SECONDS, () => this.#readPages());
    if (this.#policy.tick) this.#every(TICK_SECONDS, () => this.#policy.tick!(this.#now));
    const queue = this.#queue;
    for (;;) {
      let engine: Engine<Request> | undefined;
      let at = queue.nextAt;
      for (const candidate of this.#engines) {
        if (candidate.nextEventAt > at) continue;
        at = candidate.nextEventAt;
        engine = candidate;
      }
      if (at >= this.#endAt && this.#open === 0) return;
      this.#now = at;
      if (engine) {
        engine.advance(at);
        continue;
      }
      const pending = queue.take()();
      if (pending) await pending;
    }
  }

  #every(seconds: number, action: () => Promise<void> | void): void {
    let count = 1;
    const next = () => {
      const pending = action();
      // The products have no drift, sums would.
      this.#queue.add(++count * seconds, next);
      return pending;
    };
    this.#queue.add(seconds, next);
  }

  #begin(frontend: number, demand: ScenarioDemand, turn: Turn): void {
    const conversation = this.#conversations.of(demand, turn);
    const content = this.#dialogue.request(turn);
    const request: Request = {
      frontend,
      pool: this.#scenario.classes[conversation.requestClass]!.pool,
      envoy: -1,
      chance: this.#envoyRandom.bits(),
      conversation,
      turn,
      content,
      promptTokens: content.promptTokens,
      cachedTokens: 0,
      clientRetries: 0,
      firstAt: this.#now,
      firstTokenAt: Number.NaN,
      sentAt: this.#now,
      weights: undefined,
      engine: -1,
      attempts: 0,
      sequence: undefined,
      serial: 0,
    };
    this.#open++;
    this.#try(request);
  }

  /** One try of the client. */
  #try(request: Request): void {
    const serial = ++request.serial;
    request.envoy = this.#envoyOf(request);
    this.#reports.offered(request);
    request.firstTokenAt = Number.NaN;
    request.sequence = undefined;
    request.attempts = 0;
    request.engine = -1;
    request.sentAt = this.#now;
    request.weights = this.#policy.weights?.(request.frontend, request.pool);
    const decision = this.#policy.decide(request, this.#now);
    if ('refused' in decision) {
      this.#tryAgain(request, 'shed', decision.shouldRetry, decision.retryAfterSeconds);
      return;
    }
    if (decision.length === 0) {
      this.#tryAgain(request, 'failed', true);
      return;
    }
    this.#mustBeEligible(decision, request.pool);
    this.#queue.add(this.#now + this.#scenario.client.timeoutSeconds, () => {
      if (request.serial === serial) this.#timeOut(request);
    });
    this.#send(request, decision, 0);
  }

  /** Policies are compared under the same needs: one that breaks them would have more engines than the others. */
  #mustBeEligible(engines: readonly number[], pool: number): void {
    const { eligible, id } = this.#scenario.pools[pool]!;
    if (engines.every((engine) => eligible[engine])) return;
    throw new Error(`${this.#policy.id} chose engines ${engines}, one of which may not serve pool ${id}`);
  }

  /** The same in every run, whatever the policy does. */
  #envoyOf({ frontend, chance, clientRetries }: Request): number {
    const envoys = this.#envoys[frontend]!;
    return envoys[mix(chance, clientRetries) % envoys.length]!;
  }

  #send(request: Request, list: readonly number[], attempt: number): void {
    const index = list[attempt]!;
    const { frontend, serial } = request;
    const inFlight = this.#inFlight[request.envoy]!;
    const half = this.#scenario.rttMs[frontend]![index]! / 2000;
    request.engine = index;
    request.attempts = attempt + 1;
    inFlight[index]!++;
    this.recorder.sent(request, index, this.#now);
    const fail = () => {
      if (request.serial !== serial) return;
      inFlight[index]!--;
      if (attempt + 1 < list.length) {
        if (this.recorder.measures(request.firstAt)) this.recorder.failovers++;
        this.#send(request, list, attempt + 1);
        return;
      }
      this.#over(request, 'failed');
      this.#tryAgain(request, 'failed', true);
    };
    if (!this.#outages.connects(frontend, index)) {
      this.#queue.add(this.#now + CONNECT_TIMEOUT_SECONDS, fail);
      return;
    }
    this.#queue.add(this.#now + half, () => {
      if (request.serial !== serial) return;
      const engine = this.#engines[index]!;
      const { content, conversation } = request;
      if (this.#policy.sharesCaches) engine.preload(content, conversation.lastTokens);
      request.sequence = engine.submit(request, content, this.#now);
      if (request.sequence) return;
      // Refused connections and full queues are answered before any response header: another engine may be tried.
      this.#queue.add(this.#now + half, fail);
    });
  }

  #firstToken(request: Request, index: number, at: number): void {
    const { serial, frontend } = request;
    request.firstTokenAt = at + this.#scenario.rttMs[frontend]![index]! / 2000;
    if (this.#policy.answered && request.turn.streamed) {
      this.#queue.add(request.firstTokenAt, () => {
        if (request.serial !== serial || !this.#outages.connects(frontend, index)) return;
        this.#policy.answered!(request, index, this.#now, request.attempts);
      });
    }
  }

  #lastToken(request: Request, index: number, sequence: Sequence, at: number): void {
    const { serial, frontend } = request;
    this.#queue.add(at + this.#scenario.rttMs[frontend]![index]! / 2000, () => {
      // An answer that does not get through is one that the client waits for in vain.
      if (request.serial === serial && this.#outages.connects(frontend, index))
        this.#complete(request, sequence);
    });
  }

  #complete(request: Request, sequence: Sequence): void {
    const { envoy, engine, conversation, firstAt, firstTokenAt, content } = request;
    request.cachedTokens = sequence.cachedTokens;
    if (!request.turn.streamed) this.#policy.answered?.(request, engine, this.#now, request.attempts);
    this.#inFlight[envoy]![engine]!--;
    this.#reports.answered(request, engine, this.#now - request.sentAt);
    this.#noteMove(request);
    conversation.lastEngine = engine;
    conversation.lastTokens = content.promptTokens + content.outputTokens;
    if (this.recorder.measures(firstAt)) {
      this.recorder.promptTokens += content.promptTokens;
      this.recorder.cachedTokens += sequence.cachedTokens;
      const gaps = content.outputTokens - 1;
      if (gaps > 0) this.recorder.tbotSeconds.push((this.#now - firstTokenAt) / gaps);
    }
    this.#over(request, 'answered');
    this.#finish(request, 'answered', firstTokenAt - firstAt);
  }

  #noteMove({ conversation, engine, turn, firstAt, weights }: Request): void {
    if (turn.index > 0 && conversation.lastEngine >= 0 && this.recorder.measures(firstAt)) {
      this.recorder.followUps++;
      if (conversation.lastEngine !== engine) this.recorder.moved++;
      if (weights && conversation.lastWeights) {
        this.recorder.expectedMoves += this.#variation.between(conversation.lastWeights, weights);
      }
    }
    conversation.lastWeights = weights;
  }

  #timeOut(request: Request): void {
    const { sequence, engine } = request;
    if (sequence) this.#engines[engine]!.abort(sequence);
    this.#inFlight[request.envoy]![engine]!--;
    this.#over(request, 'timeout');
    this.#tryAgain(request, 'timeout', true);
  }

  #over(request: Request, outcome: Outcome): void {
    request.serial++;
    this.#policy.ended?.(request, request.engine, this.#now, outcome);
  }

  #tryAgain(
    request: Request,
    end: 'shed' | 'timeout' | 'failed',
    shouldRetry: boolean,
    afterSeconds?: number,
  ): void {
    if (!shouldRetry || request.clientRetries >= this.#scenario.client.retries) {
      this.#finish(request, end, this.#now - request.firstAt);
      return;
    }
    const backOff = Math.min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** request.clientRetries);
    const pause = afterSeconds ?? backOff * (1 - this.#clientRandom.unit() / 4);
    request.clientRetries++;
    if (this.recorder.measures(request.firstAt)) this.recorder.clientRetries++;
    this.#queue.add(this.#now + pause, () => this.#try(request));
  }

  #finish(
    { frontend, firstAt, conversation, turn }: Request,
    end: 'answered' | 'shed' | 'timeout' | 'failed',
    ttft: number,
  ): void {
    this.#open--;
    const { requestClass } = conversation;
    const e2eSeconds = this.#now - firstAt;
    this.recorder.ended(frontend, {
      firstAt,
      end,
      ttftSeconds: ttft,
      e2eSeconds,
      requestClass,
      streamed: turn.streamed,
    });
  }

  #scheduleFaults(): void {
    for (const fault of this.#scenario.faults) {
      this.#queue.add(fault.from, () => {
        this.#acting.add(fault);
        this.#setFaults();
      });
      this.#queue.add(fault.until, () => {
        this.#acting.delete(fault);
        this.#setFaults();
      });
    }
  }

  /** Faults may overlap: what is wrong is what those say that act now. */
  #setFaults(): void {
    const acting = [...this.#acting];
    this.#outages.set(acting);
    this.#engines.forEach((engine, index) => {
      const own = acting.filter((fault) => concerns(fault, this.#scenario.engines[index]!));
      const isDown = own.some(({ kind }) => kind === 'engine-down');
      if (isDown && !engine.isDown) this.#lose(engine);
      if (!isDown && engine.isDown) engine.bringBack();
      engine.slowness = Math.max(1, ...own.map((fault) => ('slowness' in fault ? fault.slowness : 1)));
    });
  }

  /** The engine dies with all it has: answers that have begun break off, the others are reset. */
  #lose(engine: Engine<Request>): void {
    for (const request of engine.lose()) {
      const { serial, frontend } = request;
      this.#queue.add(this.#now + this.#scenario.rttMs[frontend]![request.engine]! / 2000, () => {
        if (request.serial !== serial) return;
        this.#inFlight[request.envoy]![request.engine]!--;
        this.#over(request, 'failed');
        this.#tryAgain(request, 'failed', true);
      });
    }
  }

  /** Frontends and the control server probe by themselves: what is cut off from one is not from the other. */
  #probe(): void {
    const { engines } = this.#scenario;
    const isUp = this.#engines.map(({ isDown }) => !isDown);
    this.#controlProbes.add(isUp.map((up, engine) => up && !this.#outages.isCut(engines[engine]!.region)));
    this.#probes.forEach((probes, frontend) => {
      probes.add(isUp.map((up, engine) => up && this.#outages.connects(frontend, engine)));
    });
  }

  /** Faults of signals are of what the control server hears, not of pages that frontends read themselves. */
  #readPages(): void {
    this.#pages.forEach((pages, frontend) => {
      this.#engines.forEach(({ page }, engine) => {
        if (this.#outages.connects(frontend, engine)) pages[engine] = page;
      });
    });
  }

  #sample(): void {
    const { detectsDrift } = this.#policy;
    if (detectsDrift !== undefined && this.recorder.measures(this.#now))
      this.recorder.driftDetected = (this.recorder.driftDetected ?? false) || detectsDrift;
    this.recorder.sample(
      this.#now,
      this.#rows.map(({ frontend, pool }) => this.#policy.weights?.(frontend, pool)),
      this.#engines.map(({ load }) => load),
    );
  }
}

/** Whether a fault is of this replica, or of its whole engine. */
function concerns(fault: Fault, { id, engineId }: ScenarioEngine): boolean {
  return 'engine' in fault && (fault.engine === id || fault.engine === engineId);
}
