import { byId } from '../../collections.js';
import type { Profile } from '../../profiles/profile.js';
import type { ConfigFile } from '../schema/schema.js';
import { ASSUMED_RATE } from './assumed-rate.js';

/** Profile of engines that name none, when the file describes none at all: one request per second and replica. */
const ASSUMED_PROFILE_ID = 'assumed';

export function buildProfiles(config: ConfigFile): ReadonlyMap<string, Profile> {
  const profiles = Object.entries(config.profiles).map(([id, entry]) => buildProfile(id, entry));
  if (profiles.length === 0)
    profiles.push(buildProfile(ASSUMED_PROFILE_ID, { requestsPerSecond: 1, maxFittedRho: 0.98 }));
  return new Map(profiles.sort(byId).map((profile) => [profile.id, profile]));
}

function buildProfile(id: string, entry: ConfigFile['profiles'][string]): Profile {
  const { work, ttft, tbot, requestsPerSecond, maxFittedRho } = entry;
  // The waiting time of one server with exponential service times (M/M/1) is service time x rho / (1 - rho).
  const serviceSeconds = 1 / (requestsPerSecond ?? 1);
  return {
    id,
    work: work ?? {
      secondsPerRequest: serviceSeconds,
      secondsPerUncachedPromptToken: 0,
      secondsPerOutputToken: 0,
    },
    ttft: ttft ?? { baseSeconds: 0, secondsPerUncachedPromptToken: 0, queueSeconds: serviceSeconds },
    tbot: tbot ?? { baseSeconds: 0, kappa: 0 },
    maxFittedRho,
  };
}

/** The most careful guess for an engine that nobody described. */
export function mostWork(profiles: ReadonlyMap<string, Profile>): string {
  const cost = ({ work }: Profile) =>
    work.secondsPerRequest +
    work.secondsPerUncachedPromptToken * ASSUMED_RATE.promptTokens +
    work.secondsPerOutputToken * ASSUMED_RATE.outputTokens;
  return [...profiles.values()].reduce((most, profile) => (cost(profile) > cost(most) ? profile : most)).id;
}
