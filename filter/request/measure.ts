// How long answers take and what they tell of their tokens: for usage reports.

import { nowNs } from '../abi/clock';
import { EARLIER, Field } from '../body/fields';
import { Found, Kind, kindOf, messagesHold } from '../body/found';
import { logFields, syncPeriodMs } from '../config';
import { RETRY } from '../reasons';
import { recordFirstToken } from '../state/counters';
import { noteFirstToken as countFirstToken, notePace as countPace } from '../state/latency';
import { FlowState } from '../state/rows';
import { tokensOf } from './answer';
import { saysNew } from './attributes';
import { completeBody } from './body';
import { promptTokens } from './needs';
import { Stream } from './streams';

/**
 * Of the answers in one piece that an engine gives to a pool, so many are read each second: more would not tell
 * the means of their tokens any better, and to read an answer is one of the dearest things that the filter does.
 */
const READ_PER_SECOND: u32 = 100;
let period: u32 = 1;
let share: u32 = 1;

/** To be called every tick: what may be read until the next is shared out anew. */
export function startPeriod(): void {
  period++;
  share = max<u32>((READ_PER_SECOND * syncPeriodMs) / 1_000, 1);
}

/**
 * Whether the tokens of an answer are counted. Of streams they are, and of whatever an access log is to tell of. Time is taken of
 * all: how many an engine answers says how much it gets done.
 */
export function countsTokens(flow: FlowState, streamed: bool): bool {
  if (streamed || logFields) return true;
  if (flow.period != period) {
    flow.period = period;
    flow.left = share;
  }
  if (!flow.left) return false;
  flow.left--;
  return true;
}

/** A stream of OpenAI's begins with an event that has the role, and ends with one that says so. */
const EVENTS_WITHOUT_TOKEN: u32 = 2;

/** Keeps what the body, if it was read, says of prompt and answer, and whether a conversation begins. */
// @ts-ignore: decorator
@inline
export function notePrompt(stream: Stream, offered: bool): void {
  stream.begins = saysNew;
  const at = completeBody(stream);
  if (at) noteBodyOf(stream, at, offered);
}

function noteBodyOf(stream: Stream, at: usize, offered: bool): void {
  const body = changetype<Found>(at);
  stream.bodyRead = true;
  stream.promptTokens = promptTokens(body);
  stream.asksForStream = kindOf(body, Field.STREAM) == Kind.TRUE;
  const continues =
    (messagesHold(body) & EARLIER) != 0 ||
    kindOf(body, Field.PREVIOUS_RESPONSE_ID) == Kind.TEXT ||
    kindOf(body, Field.CONVERSATION) == Kind.TEXT;
  // A text to complete (`prompt`) does not tell whether it goes on.
  const tells = kindOf(body, Field.MESSAGES) != Kind.ABSENT || kindOf(body, Field.INPUT) != Kind.ABSENT;
  stream.begins = !continues && (tells || saysNew);
  if (!offered) return;
  stream.pool.bodiesRead++;
  if (continues) stream.pool.followUps++;
}

/** The first bytes of a stream have arrived. */
export function noteFirstToken(stream: Stream): void {
  const now = nowNs();
  stream.firstByteNs = now;
  if (!stream.counted) return;
  const flow = stream.served;
  recordFirstToken((now - stream.startedNs) / 1_000_000);
  const seconds = ownSeconds(stream, now, flow.firstTokenSum, flow.firstTokenCount);
  if (seconds < 0) return;
  flow.firstTokenSum += seconds;
  flow.firstTokenCount++;
  flow.engine.streams++;
  countFirstToken(flow.engine, seconds);
}

/** The answer has come to its end. */
// @ts-ignore: decorator
@inline
export function noteComplete(stream: Stream): void {
  if (stream.complete) return;
  stream.complete = true;
  if (!stream.counted || !stream.answeredWell) return;
  const now = nowNs();
  const flow = stream.served;
  if (!stream.streamed) {
    const seconds = ownSeconds(stream, now, flow.wholeSum, flow.wholeCount);
    if (seconds >= 0) {
      flow.wholeSum += seconds;
      flow.wholeCount++;
    }
  }
  if (!stream.countsTokens) return;
  const output = countTokens(stream);
  if (!stream.firstByteNs || output < 2) return;
  const seconds = secondsBetween(stream.firstByteNs, now);
  flow.paceSum += seconds;
  flow.paceTokens += output - 1;
  countPace(flow.engine, seconds / <f64>(output - 1));
}

/** Adds the tokens of a complete answer to the counters; the tokens of its output are returned, 0 if unknown. */
function countTokens(stream: Stream): u32 {
  const pool = stream.pool;
  const flow = stream.served;
  const tokens = stream.answer ? tokensOf(stream) : null;
  if (tokens && tokens.hasPrompt) {
    const prompt = tokens.prompt + tokens.besides;
    pool.promptCount++;
    pool.promptTokens += prompt;
    flow.promptTokens += prompt;
    if (tokens.hasCached) {
      const cached = min(tokens.cached, prompt);
      pool.cachedTokens += cached;
      pool.cachedOfTokens += prompt;
      flow.cachedTokens += cached;
      flow.cachedOfTokens += prompt;
    }
  } else if (stream.bodyRead) {
    pool.promptCount++;
    pool.promptTokens += stream.promptTokens;
  }
  // What failed before its first token is no short answer, whatever it began with.
  if (!tokens || tokens.failed) return 0;
  if (tokens.hasOutput) {
    flow.usageCount++;
    flow.outputTokens += tokens.output;
  } else if (stream.streamed && tokens.events > EVENTS_WITHOUT_TOKEN) {
    tokens.output = tokens.events - EVENTS_WITHOUT_TOKEN;
  } else {
    return 0;
  }
  pool.outputCount++;
  pool.outputTokens += tokens.output;
  return tokens.output;
}

// @ts-ignore: decorator
@inline
function secondsBetween(startNs: u64, endNs: u64): f64 {
  return <f64>(endNs - startNs) * 1e-9;
}

/**
 * How long the engine that answers a request has taken until now, of which `count` answers took `sum` until now. Where others had the
 * request before, up to a whole time limit may have been theirs: it is taken to be no slower than usual, or for unknown (-1)
 * where that is not known either.
 */
function ownSeconds(stream: Stream, now: u64, sum: f64, count: u64): f64 {
  const seconds = secondsBetween(stream.startedNs, now);
  if (stream.reason != RETRY) return seconds;
  return count == 0 ? -1 : min(seconds, sum / <f64>count);
}
