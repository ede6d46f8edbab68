import { existsSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { packageFile } from '../xds-server/package-file.js';
import type { Profile } from '../xds-server/profiles/profile.js';

export type ProfileEntry = Omit<Profile, 'id'>;

/** What `wardrop fit` made of a benchmark of a kind of engine, from `simulator/profiles`; undefined without one. */
export function fittedProfile(kind: string): ProfileEntry | undefined {
  const file = packageFile('simulator', 'profiles', `${kind}.yaml`);
  if (!existsSync(file)) return undefined;
  const { profiles } = parse(readFileSync(file, 'utf8')) as { profiles: Record<string, ProfileEntry> };
  return profiles[kind];
}

/** The profile of an engine that takes so many times as long for everything. */
export function slowed({ work, ttft, tbot, maxFittedRho }: ProfileEntry, factor: number): ProfileEntry {
  const times = <T extends object>(values: T) =>
    Object.fromEntries(Object.entries(values).map(([name, seconds]) => [name, seconds * factor])) as T;
  return {
    work: times(work),
    ttft: times(ttft),
    tbot: { ...tbot, baseSeconds: tbot.baseSeconds * factor },
    maxFittedRho,
  };
}
