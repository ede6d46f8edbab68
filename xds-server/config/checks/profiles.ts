import type { Path } from '../problem.js';
import type { Draft, Findings } from './findings.js';

export function checkProfiles(config: Draft, found: Findings): void {
  for (const [id, profile] of Object.entries(config.profiles ?? {})) {
    if (profile === undefined) continue;
    const path = ['profiles', id];
    warnOfMilliseconds(found, [...path, 'ttft', 'baseSeconds'], profile.ttft?.baseSeconds, 30);
    warnOfMilliseconds(found, [...path, 'tbot', 'baseSeconds'], profile.tbot?.baseSeconds, 1);
    const { work, requestsPerSecond, ttft, tbot } = profile;
    if (work !== undefined && requestsPerSecond !== undefined) {
      found.problem([...path, 'requestsPerSecond'], 'give either work or requestsPerSecond', { at: 'key' });
    } else if (work !== undefined && Object.values(work).every((value) => value === 0)) {
      found.problem([...path, 'work'], 'a request must cost some work');
    } else if (work === undefined && requestsPerSecond === undefined) {
      if (found.faults.excuse(path, ['work', 'requestsPerSecond'])) continue;
      found.problem(path, 'says nothing about work', { at: 'key', hint: 'give work or requestsPerSecond' });
    } else if (work !== undefined) {
      for (const key of ['ttft', 'tbot'] as const) {
        if (profile[key] === undefined && !found.faults.excuse(path, [key]))
          found.problem(path, `missing key ${JSON.stringify(key)}`, { at: 'key' });
      }
    } else if (!ttft?.baseSeconds && !tbot?.baseSeconds) {
      found.warn(
        path,
        'knows a rate only, so engines that turn slow are not found, and what they get done is not measured',
        'give ttft and tbot, roughly to begin with; wardrop fit measures them',
      );
    }
  }
}

/** No engine that anybody waits for takes so long when it is idle. */
function warnOfMilliseconds(found: Findings, path: Path, seconds: number | undefined, most: number): void {
  if (seconds === undefined || seconds < most) return;
  found.warn(path, `${seconds} seconds on an idle replica`, 'were they meant in milliseconds?');
}
