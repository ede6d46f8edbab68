// The body of an answer as it passes: its last bytes are kept, because they tell the tokens, and the events of a
// stream are counted.

import { allocate } from '../abi/blocks';
import { getBuffer, OK, RESPONSE_BODY } from '../abi/host';
import { clearBlock, copyBytes, RESULT, resetArena, resultAt, resultLength } from '../abi/memory';
import { Told, toldAtEnd } from '../body/told-error';
import { countEvents, hasToken, readUsage, skipMark, Tokens } from '../body/tokens';
import { Stream } from './streams';

/** Bytes kept of an answer: `usage` comes last, with little behind it. */
const KEPT: usize = 1024;
/** Most bytes of a stream that are fetched at once, so that they fit scratch memory. */
const PIECE: u32 = 16384;
/** Answers read at the same time, at most; others are measured but not read. */
const MOST: u32 = 1024;

@unmanaged
class Answer extends Tokens {
  kept: u32;
  /** What the last piece told that is longer than what is kept, as are events that repeat the request. */
  told: u8;
}

const BYTES: usize = (offsetof<Answer>() + 15) & ~15;

let spare: usize = 0;
let made: u32 = 0;

/** Begins to read the stream's answer, unless too many are being read. */
export function openAnswer(stream: Stream): void {
  if (spare) {
    stream.answer = spare;
    spare = <usize>load<u32>(spare);
  } else if (made < MOST) {
    made++;
    stream.answer = allocate(BYTES + KEPT);
  } else {
    return;
  }
  clearBlock(stream.answer, BYTES);
}

export function closeAnswer(stream: Stream): void {
  store<u32>(stream.answer, <u32>spare);
  spare = stream.answer;
  stream.answer = 0;
}

/** Takes in a piece of the answer's body. False while a stream has not come to its first token. */
export function readAnswer(stream: Stream, size: u32): bool {
  const answer = changetype<Answer>(stream.answer);
  if (stream.streamed) return readEvents(stream, answer, size);
  const length = min<u32>(size, <u32>KEPT);
  if (readPiece(size - length, length)) keep(answer, resultAt(), resultLength());
  return true;
}

/** What error a stream, now complete, has told; one that has is no answer of any length. */
export function errorOf(stream: Stream): Told {
  if (!stream.answer) return Told.NO_ERROR;
  const answer = changetype<Answer>(stream.answer);
  let told = toldAtEnd(stream.answer + BYTES, <usize>answer.kept);
  if (told >= Told.CUT) told = toldOfLong(answer, told);
  if (told == Told.NO_ERROR) return answer.failed ? Told.ERROR : Told.NO_ERROR;
  answer.failed = true;
  return told;
}

/** What a stream's last event told whose beginning is not among the bytes kept: what its piece did, else its end. */
function toldOfLong(answer: Answer, end: Told): Told {
  if (answer.told == Told.ERROR || answer.told == Told.FAILURE) return <Told>answer.told;
  return end == Told.CUT_ERROR ? Told.ERROR : Told.NO_ERROR;
}

function readEvents(stream: Stream, answer: Answer, size: u32): bool {
  let hasBegun = stream.firstByteSeen;
  for (let offset: u32 = 0; offset < size; offset += PIECE) {
    if (!readPiece(offset, min(size - offset, PIECE))) return true;
    const end = resultAt() + resultLength();
    const at = hasBegun ? resultAt() : skipMark(resultAt(), resultLength(), answer);
    countEvents(at, end - at, answer);
    if (!hasBegun) {
      // Anthropic's streams tell the prompt's tokens at their beginning.
      readUsage(at, end - at, answer);
      hasBegun = hasToken(at, end - at, answer);
    }
    keep(answer, at, end - at);
    if (end - at > KEPT) answer.told = <u8>toldAtEnd(at, end - at);
  }
  return hasBegun;
}

function readPiece(offset: u32, length: u32): bool {
  resetArena();
  store<u64>(RESULT, 0);
  return getBuffer(RESPONSE_BODY, offset, length, RESULT, RESULT + 4) == OK;
}

/** What the answer, now complete, tells of its tokens. */
export function tokensOf(stream: Stream): Tokens {
  const answer = changetype<Answer>(stream.answer);
  readUsage(stream.answer + BYTES, <usize>answer.kept, answer);
  return answer;
}

/** Appends to the bytes kept; the oldest ones give way. */
function keep(answer: Answer, at: usize, length: usize): void {
  const bytes = changetype<usize>(answer) + BYTES;
  const taken = min(length, KEPT);
  const before = min(<usize>answer.kept, KEPT - taken);
  if (before) memory.copy(bytes, bytes + <usize>answer.kept - before, before);
  copyBytes(bytes + before, at + length - taken, taken);
  answer.kept = <u32>(before + taken);
}
