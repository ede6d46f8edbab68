import { EngineCore, type EngineRequest, type Sequence } from '../engine/engine-core.js';
import type { Turn } from '../load/conversations.js';
import type {
  Conversation,
  EngineTelemetry,
  Outcome,
  Policy,
  PolicyFactory,
  RoutedRequest,
} from '../policies/policy.js';
import { Random } from '../random.js';
import { Dialogue } from './dialogue.js';
import { EventQueue } from './event-queue.js';
import { Recorder, SAMPLE_SECONDS } from './recorder.js';
import type { Scenario } from './scenario.js';

/** Health probes of an engine; two contrary results in a row change what is thought of it. */
const PROBE_SECONDS = 0.5;
const TICK_SECONDS = 0.25;
/** OpenAI's SDKs: two retries, 0.5 s doubled up to 8 s, less up to a quarter. */
const CLIENT_RETRIES = 2;
const FIRST_RETRY_SECONDS = 0.5;
const LONGEST_RETRY_SECONDS = 8;

/** A request of a client, over all its tries. */
interface Request extends RoutedRequest {
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

interface Engine {
  core: EngineCore;
  down: boolean;
  probedDown: number;
  ready: boolean;
  readonly requests: Map<Sequence, Request>;
  completed: number;
  ttftSum: number;
  ttftCount: number;
  tbotSum: number;
}

interface ConversationState extends Conversation {
  lastWeights: readonly number[] | undefined;
}

/** Frontends, engines, clients and a network in virtual time, and one policy that chooses engines. */
export class World {
  readonly recorder: Recorder;
  readonly #scenario: Scenario;
  readonly #queue = new EventQueue();
  readonly #engines: Engine[];
  readonly #dialogue: Dialogue;
  readonly #clientRandom: Random;
  readonly #inFlight: Int32Array[];
  readonly #ready: boolean[];
  readonly #conversations = new Map<string, ConversationState>();
  readonly #offered: number[];
  readonly #e2e: { sum: number; count: number }[][];
  readonly #tv = new WeakMap<readonly number[], WeakMap<readonly number[], number>>();
  readonly #endAt: number;
  readonly #seed: number;
  #policy!: Policy;
  #now = 0;
  #open = 0;
  #controlDown = false;

  private constructor(scenario: Scenario, seed: number) {
    this.#scenario = scenario;
    this.#seed = seed;
    this.recorder = new Recorder(scenario);
    this.#endAt = scenario.warmupSeconds + scenario.seconds;
    this.#dialogue = new Dialogue(scenario.engines[0]!.parameters.blockTokens);
    this.#clientRandom = new Random(seed, 'clients');
    this.#engines = scenario.engines.map((_, index) => ({
      core: this.#core(index),
      down: false,
      probedDown: 0,
      ready: true,
      requests: new Map(),
      completed: 0,
      ttftSum: 0,
      ttftCount: 0,
      tbotSum: 0,
    }));
    this.#ready = scenario.engines.map(() => true);
    this.#inFlight = scenario.frontends.map(() => new Int32Array(scenario.engines.length));
    this.#offered = scenario.frontends.map(() => 0);
    this.#e2e = scenario.frontends.map(() => scenario.engines.map(() => ({ sum: 0, count: 0 })));
  }

  /** Runs the scenario to the last answer. Requests and their times depend on the seed alone. */
  static async run(scenario: Scenario, policy: PolicyFactory, seed: number): Promise<Recorder> {
    const world = new World(scenario, seed);
    const local = { inFlight: world.#inFlight, ready: world.#ready };
    world.#policy = await policy({ scenario, seed, local });
    try {
      await world.#run();
    } finally {
      await world.#policy.close?.();
    }
    return world.recorder;
  }

  async #run(): Promise<void> {
    this.#scenario.frontends.forEach((_, frontend) => {
      this.#startConversations(frontend);
    });
    this.#scheduleFaults();
    this.#every(PROBE_SECONDS, () => this.#probe());
    this.#every(SAMPLE_SECONDS, () => this.#sample());
    this.#every(this.#scenario.signals.periodSeconds, () => this.#report());
    if (this.#policy.tick) this.#every(TICK_SECONDS, () => this.#policy.tick!(this.#now));
    const queue = this.#queue;
    for (;;) {
      let engine: Engine | undefined;
      let at = queue.nextAt;
      for (const candidate of this.#engines) {
        if (candidate.core.nextEventAt > at) continue;
        at = candidate.core.nextEventAt;
        engine = candidate;
      }
      if (at >= this.#endAt && this.#open === 0) return;
      this.#now = at;
      if (engine) {
        engine.core.advance(at);
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

  #core(index: number): EngineCore {
    return new EngineCore(this.#scenario.engines[index]!.parameters, (sequence, at) => {
      const engine = this.#engines[index]!;
      if (sequence.generated === 1) this.#firstToken(engine, index, sequence, at);
      if (sequence.finished) this.#lastToken(engine, index, sequence, at);
    });
  }

  /** A Poisson stream of conversations whose rate follows the curve, by thinning one at its peak. */
  #startConversations(frontend: number): void {
    const { id, source, rate } = this.#scenario.frontends[frontend]!;
    const random = new Random(this.#seed, id);
    const meanGap = source.meanTurns / rate.peak;
    let number = 0;
    const next = (at: number) => {
      if (at >= this.#endAt) return;
      this.#queue.add(at, () => {
        if (random.unit() * rate.peak < rate.at(at)) {
          const turns = source.conversation(`${id}-${number++}`, at, random);
          for (const turn of turns) {
            if (turn.atSeconds < this.#endAt)
              this.#queue.add(turn.atSeconds, () => this.#begin(frontend, turn));
          }
        }
        next(at + random.exponential(meanGap));
      });
    };
    next(random.exponential(meanGap));
  }

  #begin(frontend: number, turn: Turn): void {
    const conversation = this.#conversation(turn);
    const content = this.#dialogue.request(turn);
    const request: Request = {
      frontend,
      conversation,
      turn,
      content,
      promptTokens: content.promptTokens,
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
    this.#offered[frontend]!++;
    this.#open++;
    this.#try(request);
  }

  #conversation(turn: Turn): ConversationState {
    const known = this.#conversations.get(turn.conversationId);
    if (turn.last) this.#conversations.delete(turn.conversationId);
    if (known) return known;
    const conversation: ConversationState = {
      id: turn.conversationId,
      hash: new Random(this.#seed, turn.conversationId).bits(),
      lastEngine: -1,
      lastTokens: 0,
      lastWeights: undefined,
    };
    if (!turn.last) this.#conversations.set(turn.conversationId, conversation);
    return conversation;
  }

  /** One try of the client: at most `clientTimeoutSeconds`. */
  #try(request: Request): void {
    const serial = ++request.serial;
    request.firstTokenAt = Number.NaN;
    request.sequence = undefined;
    request.attempts = 0;
    request.engine = -1;
    request.sentAt = this.#now;
    request.weights = this.#policy.weights?.(request.frontend);
    const decision = this.#policy.decide(request, this.#now);
    if ('refused' in decision) {
      this.#tryAgain(request, 'shed', decision.shouldRetry, decision.retryAfterSeconds);
      return;
    }
    if (decision.length === 0) {
      this.#tryAgain(request, 'failed', true);
      return;
    }
    this.#queue.add(this.#now + this.#scenario.clientTimeoutSeconds, () => {
      if (request.serial === serial) this.#timeOut(request);
    });
    this.#send(request, decision, 0);
  }

  #send(request: Request, list: readonly number[], attempt: number): void {
    const index = list[attempt]!;
    const { frontend, serial } = request;
    const half = this.#scenario.rttMs[frontend]![index]! / 2000;
    request.engine = index;
    request.attempts = attempt + 1;
    this.#inFlight[frontend]![index]!++;
    this.recorder.sent(frontend, index);
    this.#queue.add(this.#now + half, () => {
      if (request.serial !== serial) return;
      const engine = this.#engines[index]!;
      if (!engine.down) {
        if (this.#policy.sharesCaches) this.#preload(engine, request);
        const sequence = engine.core.submit(request.content, this.#now);
        if (sequence) {
          request.sequence = sequence;
          engine.requests.set(sequence, request);
          return;
        }
      }
      // Refused connections and full queues are answered before any response header: another engine may be tried.
      this.#queue.add(this.#now + half, () => {
        if (request.serial !== serial) return;
        this.#inFlight[frontend]![index]!--;
        if (attempt + 1 < list.length) {
          this.recorder.failovers++;
          this.#send(request, list, attempt + 1);
          return;
        }
        this.#over(request, 'failed');
        this.#tryAgain(request, 'failed', true);
      });
    });
  }

  #preload(engine: Engine, { conversation, content }: Request): void {
    const { blockTokens } = engine.core.parameters;
    engine.core.preload(content.blockIds.slice(0, Math.floor(conversation.lastTokens / blockTokens)));
  }

  #firstToken(engine: Engine, index: number, sequence: Sequence, at: number): void {
    const request = engine.requests.get(sequence)!;
    engine.ttftSum += at - sequence.arrivedAt;
    engine.ttftCount++;
    const { serial, frontend } = request;
    request.firstTokenAt = at + this.#scenario.rttMs[frontend]![index]! / 2000;
    if (this.#policy.answered && request.turn.streamed) {
      this.#queue.add(request.firstTokenAt, () => {
        if (request.serial === serial) this.#policy.answered!(request, index, this.#now, request.attempts);
      });
    }
  }

  #lastToken(engine: Engine, index: number, sequence: Sequence, at: number): void {
    const request = engine.requests.get(sequence)!;
    engine.requests.delete(sequence);
    engine.completed++;
    engine.tbotSum += (at - sequence.firstTokenAt) / Math.max(1, request.content.outputTokens - 1);
    const { serial, frontend } = request;
    this.#queue.add(at + this.#scenario.rttMs[frontend]![index]! / 2000, () => {
      if (request.serial === serial) this.#complete(request, sequence);
    });
  }

  #complete(request: Request, sequence: Sequence): void {
    const { frontend, engine, firstAt, firstTokenAt, content } = request;
    const conversation = request.conversation as ConversationState;
    if (!request.turn.streamed) this.#policy.answered?.(request, engine, this.#now, request.attempts);
    this.#inFlight[frontend]![engine]!--;
    const e2e = this.#e2e[frontend]![engine]!;
    e2e.sum += this.#now - request.sentAt;
    e2e.count++;
    this.#noteMove(request, conversation);
    conversation.lastEngine = engine;
    conversation.lastTokens = content.promptTokens + content.outputTokens;
    if (this.recorder.measures(firstAt)) {
      this.recorder.promptTokens += content.promptTokens;
      this.recorder.cachedTokens += sequence.cachedTokens;
    }
    this.#over(request, 'answered');
    this.#finish(request, 'answered', firstTokenAt - firstAt);
  }

  #noteMove({ engine, turn, firstAt, weights }: Request, conversation: ConversationState): void {
    if (turn.index > 0 && conversation.lastEngine >= 0 && this.recorder.measures(firstAt)) {
      this.recorder.followUps++;
      if (conversation.lastEngine !== engine) this.recorder.moved++;
      if (weights && conversation.lastWeights) {
        this.recorder.weighted++;
        this.recorder.expectedMoves += this.#totalVariation(conversation.lastWeights, weights);
      }
    }
    conversation.lastWeights = weights;
  }

  #totalVariation(a: readonly number[], b: readonly number[]): number {
    if (a === b) return 0;
    let known = this.#tv.get(a);
    if (!known) {
      known = new WeakMap();
      this.#tv.set(a, known);
    }
    let value = known.get(b);
    if (value === undefined) {
      value = a.reduce((sum, weight, index) => sum + Math.abs(weight - b[index]!), 0) / 2;
      known.set(b, value);
    }
    return value;
  }

  #timeOut(request: Request): void {
    const { sequence, engine } = request;
    if (sequence) {
      const { core, requests } = this.#engines[engine]!;
      core.abort(sequence);
      requests.delete(sequence);
    }
    this.#inFlight[request.frontend]![engine]!--;
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
    if (!shouldRetry || request.clientRetries >= CLIENT_RETRIES) {
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
    { frontend, firstAt }: Request,
    end: 'answered' | 'shed' | 'timeout' | 'failed',
    ttft: number,
  ): void {
    this.#open--;
    this.recorder.ended(frontend, { firstAt, end, ttftSeconds: ttft, e2eSeconds: this.#now - firstAt });
  }

  #scheduleFaults(): void {
    const { faults, engines } = this.#scenario;
    for (const fault of faults) {
      if (fault.kind === 'control-down') {
        this.#queue.add(fault.from, () => {
          this.#controlDown = true;
        });
        this.#queue.add(fault.until, () => {
          this.#controlDown = false;
        });
        continue;
      }
      const index = engines.findIndex(({ id }) => id === fault.engine);
      const engine = this.#engines[index]!;
      if (fault.kind === 'engine-down') {
        this.#queue.add(fault.from, () => this.#lose(engine));
        this.#queue.add(fault.until, () => {
          engine.core = this.#core(index);
          engine.down = false;
        });
      } else {
        this.#queue.add(fault.from, () => {
          engine.core.slowness = fault.slowness;
        });
        this.#queue.add(fault.until, () => {
          engine.core.slowness = 1;
        });
      }
    }
  }

  /** The engine dies with all it has: answers that have begun break off, the others are reset. */
  #lose(engine: Engine): void {
    engine.down = true;
    const lost = [...engine.requests.values()];
    engine.requests.clear();
    for (const request of lost) engine.core.abort(request.sequence!);
    engine.core = this.#core(this.#engines.indexOf(engine));
    for (const request of lost) {
      const { serial, frontend } = request;
      this.#queue.add(this.#now + this.#scenario.rttMs[frontend]![request.engine]! / 2000, () => {
        if (request.serial !== serial) return;
        this.#inFlight[frontend]![request.engine]!--;
        this.#over(request, 'failed');
        this.#tryAgain(request, 'failed', true);
      });
    }
  }

  #probe(): void {
    this.#engines.forEach((engine, index) => {
      engine.probedDown = engine.down === engine.ready ? engine.probedDown + 1 : 0;
      if (engine.probedDown < 2) return;
      engine.ready = !engine.down;
      engine.probedDown = 0;
      this.#ready[index] = engine.ready;
    });
  }

  #report(): void {
    const { periodSeconds, delaySeconds } = this.#scenario.signals;
    const policy = this.#policy;
    const telemetry = {
      atSeconds: this.#now,
      engines: this.#engines.map((engine) => engineTelemetry(engine, periodSeconds)),
      demandRps: this.#offered.map((count) => count / periodSeconds),
      e2eSeconds: this.#e2e.map((row) => row.map(({ sum, count }) => sum / count)),
    };
    this.#offered.fill(0);
    for (const row of this.#e2e) for (const cell of row) cell.sum = cell.count = 0;
    if (this.#controlDown) return;
    const observed = policy.observe?.(this.#now);
    if (!policy.update) return;
    this.#queue.add(this.#now + delaySeconds, () => {
      if (!this.#controlDown) return policy.update!(telemetry, this.#now, observed);
    });
  }

  #sample(): void {
    this.recorder.sample(
      this.#now,
      this.#scenario.frontends.map((_, frontend) => this.#policy.weights?.(frontend)),
      this.#engines.map(({ core }) => core.running + core.waiting),
    );
  }
}

/** What the engine's metrics page shows of the period; starts the next one. */
function engineTelemetry(engine: Engine, periodSeconds: number): EngineTelemetry {
  const telemetry = {
    ready: engine.ready,
    running: engine.core.running,
    waiting: engine.core.waiting,
    completedRps: engine.completed / periodSeconds,
    ttftSeconds: engine.ttftSum / engine.ttftCount,
    tbotSeconds: engine.tbotSum / engine.completed,
  };
  engine.completed = engine.ttftSum = engine.ttftCount = engine.tbotSum = 0;
  return telemetry;
}
