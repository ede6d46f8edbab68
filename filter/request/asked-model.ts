// The model that the path of a request without a body names: the one whose details are asked for, or that a realtime
// session is for.

import { MAX_NAME_BYTES } from '../../wire/layout';
import { escapedAt, same, Text } from '../abi/text';
import { lengthBeforeQuery, pathAt, pathBegins, pathLength } from './attributes';
import { findModel } from './eligibility';

const DETAILS = new Text('/v1/models/');
const PARAMETER = new Text('model=');
/** A name without escapes. */
const NAME: usize = memory.data(<i32>MAX_NAME_BYTES);

/** Its row, 0 if none is named or served. */
export function modelOfPath(): usize {
  const end = lengthBeforeQuery();
  if (pathBegins(DETAILS)) return findEscaped(DETAILS.length, end);
  for (let start = end + 1; start < pathLength; ) {
    const stop = endOfParameter(start);
    const value = start + PARAMETER.length;
    if (value <= stop && same(pathAt + start, PARAMETER.at, PARAMETER.length)) return findEscaped(value, stop);
    start = stop + 1;
  }
  return 0;
}

function endOfParameter(start: usize): usize {
  let at = start;
  while (at < pathLength && load<u8>(pathAt + at) != 0x26) at++;
  return at;
}

/** Finds the model whose name is this part of the path. */
function findEscaped(start: usize, end: usize): usize {
  let length: usize = 0;
  for (let at = start; at < end; length++) {
    if (length == MAX_NAME_BYTES) return 0;
    const escaped = escapedAt(pathAt + at, pathAt + end);
    store<u8>(NAME + length, escaped < 0 ? load<u8>(pathAt + at) : <u8>escaped);
    at += escaped < 0 ? 1 : 3;
  }
  return findModel(NAME, length);
}
