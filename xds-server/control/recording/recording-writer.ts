import { isDeepStrictEqual } from 'node:util';
import { exactJson } from '../../exact-json.js';
import { partLines } from './known-lines.js';
import type { Recorded, RecordedSolve } from './recording.js';
import { FORMAT, PARTS, type Parts, type SolveLine, signalLine } from './recording-lines.js';

/** Writes a recording, line by line. */
export class RecordingWriter {
  #last: Partial<Parts> = {};
  #lines = 0;

  /** Lines with their ends, each made when it is asked for. Those of the last one must be taken before. */
  *lines(recorded: Recorded): Generator<string> {
    if (this.#lines === 0) {
      this.#lines++;
      yield `${JSON.stringify({ wardropRecording: FORMAT })}\n`;
    }
    if (recorded.kind === 'known') for (const line of partLines(recorded.saved)) yield this.#numbered(line);
    const line = recorded.kind === 'solve' ? this.#solve(recorded) : signalLine(recorded);
    yield this.#numbered(exactJson(line));
  }

  #numbered(object: string): string {
    this.#lines++;
    return `{"line":${this.#lines},${object.slice(1)}\n`;
  }

  #solve({ input, times, plan, failure }: RecordedSolve): SolveLine {
    const { state, previous, profiles, policy } = input;
    const { fleet, engines, demands, atMs, settledSeconds, settledSecondsByPool } = state;
    const parts: Parts = { fleet, engines, demands, profiles: [...profiles], policy, previous };
    const changed = PARTS.filter((part) => !isDeepStrictEqual(parts[part], this.#last[part]));
    // What is in force after this solve is what the next one starts from.
    this.#last = { ...parts, previous: plan };
    return {
      kind: 'solve',
      atMs,
      settledSeconds,
      ...(settledSecondsByPool && { settledSecondsByPool }),
      times,
      ...Object.fromEntries(changed.map((part) => [part, parts[part]])),
      ...(isDeepStrictEqual(plan, previous) ? {} : { plan }),
      ...(failure !== undefined && { failure }),
    };
  }
}
