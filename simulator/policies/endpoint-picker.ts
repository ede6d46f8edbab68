import { Random } from '../random.js';
import { choicesOf, inTurn, readyOf, rowOf } from './choices.js';
import type { Conversation, PolicyFactory } from './policy.js';

/** Weights of llm-d's guides. */
const PREFIX = 3;
const KV_USE = 2;
const QUEUE = 2;

/**
 * The endpoint picker of the Gateway API Inference Extension and llm-d: each engine is scored by the part of the prompt
 * that it was sent before, by its free memory and by its queue, and the highest sum wins. One picker for each frontend, which all
 * its Envoys ask, reads all metrics pages twenty times a second: it knows more, and sooner, than any other policy here. What
 * asking it takes is not counted, and distances are nothing to it.
 */
export const endpointPicker: PolicyFactory = ({ scenario, seed, local }) => {
  const choices = choicesOf(scenario);
  const random = new Random(seed, 'endpoint-picker');
  /** Prompt tokens of a conversation that each engine was sent, by frontend. */
  const sent = scenario.frontends.map(() => new WeakMap<Conversation, number[]>());
  return {
    id: 'endpoint-picker',
    readsPages: true,
    decide(request) {
      const { frontend, conversation, promptTokens } = request;
      const engines = rowOf(choices, request);
      const ready = readyOf(engines, local.ready[frontend]!);
      const pages = local.pages[frontend]!;
      const queues = ready.map((engine) => pages[engine]!.waiting);
      const [shortest, longest] = [Math.min(...queues), Math.max(...queues)];
      const known = sent[frontend]!.get(conversation) ?? scenario.engines.map(() => 0);
      sent[frontend]!.set(conversation, known);
      const score = (engine: number) => {
        const { waiting, kvUse } = pages[engine]!;
        const prefix = Math.min(1, known[engine]! / promptTokens);
        const queue = longest === shortest ? 1 : (longest - waiting) / (longest - shortest);
        return PREFIX * prefix + KV_USE * (1 - kvUse) + QUEUE * queue;
      };
      const list = ready
        .map((engine) => ({ engine, score: score(engine), tie: random.unit() }))
        .sort((a, b) => b.score - a.score || a.tie - b.tie)
        .map(({ engine }) => engine);
      const attempts = inTurn([...list, ...engines], local.ready[frontend]!);
      known[attempts[0]!] = promptTokens;
      return attempts;
    },
  };
};
