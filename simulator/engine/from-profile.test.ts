import { describe, expect, it } from 'vitest';
import type { Profile } from '../../xds-server/profiles/profile.js';
import { workSeconds } from '../../xds-server/profiles/profile.js';
import { closedLoop, openLoop } from '../benchmark/benchmark.js';
import { conversation, exampleConversations } from '../load/conversations.js';
import { measured } from '../workloads/conversation-source.js';
import { engineOf } from './from-profile.js';

const profile = (parts: Partial<Profile>): Profile => ({
  id: 'p',
  work: { secondsPerRequest: 0, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
  ttft: { baseSeconds: 0.02, secondsPerUncachedPromptToken: 0, queueSeconds: 0.003 },
  tbot: { baseSeconds: 0.009, kappa: 0.5 },
  maxFittedRho: 0.95,
  ...parts,
});

const profiles: Record<string, Profile> = {
  'tokens of prompts and answers': profile({
    work: { secondsPerRequest: 0, secondsPerUncachedPromptToken: 4e-5, secondsPerOutputToken: 1.6e-4 },
  }),
  'requests alone': profile({
    work: { secondsPerRequest: 0.01, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
  }),
  'a large model': profile({
    work: { secondsPerRequest: 0.08, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
    tbot: { baseSeconds: 0.03, kappa: 0.3 },
  }),
  'a replica of many cards, with hundreds of requests at a time': profile({
    work: { secondsPerRequest: 0.001, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
    tbot: { baseSeconds: 0.012, kappa: 0.4 },
  }),
  'a rate and no times': profile({
    work: { secondsPerRequest: 1 / 12, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
    tbot: { baseSeconds: 0, kappa: 0 },
  }),
};

const longPrompts = {
  ...exampleConversations,
  firstMessageTokens: { min: 3000, max: 5000 },
  laterMessageTokens: { min: 1000, max: 2000 },
  outputTokens: { min: 16, max: 24 },
};

const cases = [
  ...Object.entries(profiles).map(([name, each]) => ({ name, each, shape: exampleConversations })),
  ...['requests alone', 'a large model'].map((name) => ({
    ...{ name: `${name}, with long prompts`, each: profiles[name]!, shape: longPrompts },
  })),
];

describe.each(cases)('an engine made of a profile of $name', ({ each, shape }) => {
  const { expected } = measured({ conversation: (id, at, random) => conversation(shape, id, at, random) });
  const parameters = engineOf(each, expected, 20_000);
  const capacity = 1 / workSeconds(each, expected);

  const span = { warmupSeconds: 20, seconds: 60 };
  const full = closedLoop(parameters, shape, 2 * parameters.maxRunning, span);

  it('answers as many requests as its work lets through when it is never idle', () => {
    expect(Math.abs(full.completedRps / capacity - 1)).toBeLessThan(0.05);
  });

  it('takes as long for a token as the profile says, idle and full', () => {
    const { baseSeconds, kappa } = each.tbot;
    // A rate alone says nothing of tokens.
    if (baseSeconds === 0) return;
    const idle = openLoop(parameters, shape, capacity / 50, span, 1);
    expect(Math.abs(idle.tbotSeconds / baseSeconds - 1)).toBeLessThan(0.05);
    expect(Math.abs((full.tbotSeconds * (1 - kappa)) / baseSeconds - 1)).toBeLessThan(0.05);
  });
});
