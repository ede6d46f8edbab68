import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Profile, workSeconds } from '../../xds-server/profiles/profile.js';
import { engineKinds } from '../engine/parameters.js';
import { exampleConversations } from '../load/conversations.js';
import { closedLoop, openLoop } from './benchmark.js';

const capacities = { 'sim-100': 100, 'sim-80': 80 };

const runAt = (kind: string, requestsPerSecond: number, seconds = 60) =>
  openLoop(engineKinds[kind]!, exampleConversations, requestsPerSecond, { warmupSeconds: 15, seconds }, 3);

describe.each(Object.entries(capacities))(
  'engine kind %s under the example conversations',
  (kind, capacity) => {
    it(`answers ${capacity} requests per second when it is never idle`, () => {
      const parameters = engineKinds[kind]!;
      const span = { warmupSeconds: 20, seconds: 80 };
      const answered = closedLoop(
        parameters,
        exampleConversations,
        2 * parameters.maxRunning,
        span,
      ).completedRps;
      expect(Math.abs(answered / capacity - 1)).toBeLessThan(0.02);
    });

    it('keeps up with load below its capacity and falls behind above it', () => {
      const below = runAt(kind, 0.9 * capacity);
      const above = runAt(kind, 1.2 * capacity);
      expect(Math.abs(below.completedRps / below.offeredRps - 1)).toBeLessThan(0.03);
      expect(above.completedRps).toBeLessThan(1.03 * capacity);
    });

    it('answers more slowly the more it is loaded, from queueing and from larger batches', () => {
      const results = [0.1, 0.5, 0.8, 0.95].map((rho) => runAt(kind, rho * capacity));
      const rising = (values: number[]) => expect(values).toEqual([...values].sort((a, b) => a - b));
      rising(results.map(({ ttftSeconds }) => ttftSeconds));
      rising(results.map(({ tbotSeconds }) => tbotSeconds));
      expect(results.at(-1)!.ttftSeconds).toBeGreaterThan(2 * results[0]!.ttftSeconds);
    });

    it('finds most of the prompts of returning conversations in its cache', () => {
      const { promptTokens, uncachedPromptTokens } = runAt(kind, 0.8 * capacity);
      expect(1 - uncachedPromptTokens / promptTokens).toBeGreaterThan(0.65);
    });

    it('is described by its checked-in profile', () => {
      const profile = profileOf(kind);
      const measured = runAt(kind, 0.7 * capacity, 200);
      const work = workSeconds(profile, measured);
      expect(Math.abs(work * capacity - 1)).toBeLessThan(0.03);
      const rho = measured.offeredRps * work;
      const { ttft, tbot } = profile;
      const ttftSeconds =
        ttft.baseSeconds +
        ttft.secondsPerUncachedPromptToken * measured.uncachedPromptTokens +
        (ttft.queueSeconds * rho) / (1 - rho);
      expect(Math.abs(ttftSeconds / measured.ttftSeconds - 1)).toBeLessThan(0.2);
      expect(Math.abs(tbot.baseSeconds / (1 - tbot.kappa * rho) / measured.tbotSeconds - 1)).toBeLessThan(
        0.15,
      );
    });
  },
);

function profileOf(kind: string): Profile {
  const file = new URL(`../profiles/${kind}.yaml`, import.meta.url);
  const { profiles } = parse(readFileSync(file, 'utf8')) as { profiles: Record<string, Profile> };
  return { ...profiles[kind]!, id: kind };
}
