// Step 1, where headers do not tell: model and key from a JSON body or a form, read as it arrives while the request
// waits.

import { KEY_FIELDS } from '../../wire/names';
import { allocate } from '../abi/blocks';
import { getBuffer, OK, REQUEST_BODY } from '../abi/host';
import { Region, RESULT, resetArena, resultAt, resultLength, swapLanding } from '../abi/memory';
import { equalsIgnoringCase, Text } from '../abi/text';
import { findBoundary, isFormType } from '../body/boundary';
import { AUDIO, FIRST_KEY_FIELD, Field, IMAGE, keyFieldNamed } from '../body/fields';
import {
  Form,
  isAtFile,
  isBrokenForm,
  isCompleteForm,
  isHeadRead,
  restartAtHead,
  scanForm,
  startForm,
} from '../body/form';
import { FOUND_SIZE, Found, Kind, kindOf, lengthOf, startOf, TEXT_LIMIT, textOf } from '../body/found';
import { isComplete, Scan, scan, startScan } from '../body/scan';
import { endOfItem, keyFields, maxBodyBytes, prefixKeyBytes, readBodies } from '../config';
import { snapshot } from '../snapshot/current';
import {
  contentLength,
  encodingAt,
  encodingLength,
  KEPT_HEADERS,
  keepAttributes,
  keyLength,
  modelAt,
  modelLength,
  pathBegins,
  readAttributes,
  recallAttributes,
  supplyKey,
  supplyModel,
  typeAt,
  typeLength,
} from './attributes';
import { findModel } from './eligibility';
import { needsBody, rulesReadBody } from './needs';
import { Stream } from './streams';

const JSON_TYPE = new Text('application/json');
const JSON_SUFFIX = new Text('+json');
const IDENTITY = new Text('identity');
// What the files of a form are.
const AUDIO_PATH = new Text('/v1/audio/');
const IMAGE_PATH = new Text('/v1/images/');
/**
 * Most bytes of a JSON body that are fetched at once, so that long ones do not make the VM grow; and as many are waited for
 * while more is to come, because it is the fetching that costs, more than to scan a few kilobytes.
 */
const JSON_PIECE: u32 = 131072;
/** Most bytes of a form that are fetched at once, so that they fit scratch memory. */
const FORM_PIECE: u32 = 16384;

/** Why a body is not read. */
export enum Unread {
  /** It is, or was. */
  READ,
  /** Headers tell everything, or bodies are not to be read. */
  NOT_NEEDED,
  TYPE,
  ENCODING,
  /** A form whose type does not say how its parts are told apart. */
  NO_BOUNDARY,
  LARGE,
}

/** What holds a conversation, by API. */
const conversations: StaticArray<Field> = [Field.MESSAGES, Field.INPUT, Field.PROMPT];
/** Key fields in the order that counts, by their place in KEY_FIELDS. */
const order: StaticArray<i32> = new StaticArray<i32>(KEY_FIELDS.length);
let keyFieldCount: i32 = 0;

/** Brings the configured order of key fields in force. */
export function chooseKeyFields(): void {
  const configured = keyFields;
  keyFieldCount = 0;
  if (!configured) {
    for (; keyFieldCount < order.length; keyFieldCount++) order[keyFieldCount] = keyFieldCount;
    return;
  }
  for (let start: usize = 0; start < configured.length && keyFieldCount < order.length; ) {
    const end = endOfItem(configured.at, start, configured.length);
    order[keyFieldCount++] = keyFieldNamed(configured.at + start, end - start);
    start = end + 1;
  }
}

let spare: usize = 0;

/**
 * Whether the body of the request whose headers were read last is to be read, and if not, why. Before the first
 * snapshot nobody can say what is needed, so it is read.
 */
// @ts-ignore: decorator
@inline
export function judgeBody(): Unread {
  return headersSuffice() ? Unread.NOT_NEEDED : judgeType();
}

// @ts-ignore: decorator
@inline
function headersSuffice(): bool {
  if (!readBodies) return true;
  if (modelLength == 0 || keyLength == 0 || !snapshot) return false;
  const model = findModel(modelAt, modelLength);
  return !model || !(needsBody(model) || rulesReadBody());
}

function judgeType(): Unread {
  const form = isForm();
  if (!form && !isJsonType()) return Unread.TYPE;
  if (encodingLength > 0 && !equalsIgnoringCase(encodingAt, encodingLength, IDENTITY))
    return Unread.ENCODING;
  if (form) return findBoundary(typeAt, typeLength) ? Unread.READ : Unread.NO_BOUNDARY;
  return contentLength > maxBodyBytes ? Unread.LARGE : Unread.READ;
}

/** Begins to read the body of the request that `judgeBody` has judged, and keeps its headers. */
export function openBody(stream: Stream): void {
  if (spare) {
    stream.scan = spare;
    spare = <usize>load<u32>(spare);
  } else {
    stream.scan = allocate(FOUND_SIZE + KEPT_HEADERS);
  }
  if (isForm()) startForm(stream.scan, whatFilesAre()).headOnly = contentLength > maxBodyBytes;
  else startScan(stream.scan);
  keepAttributes(stream.scan + FOUND_SIZE);
}

/** Reads the headers of a request that has waited. */
export function recallHeaders(stream: Stream): void {
  if (stream.scan) recallAttributes(stream.scan + FOUND_SIZE);
  else readAttributes();
}

// @ts-ignore: decorator
@inline
export function closeBody(stream: Stream): void {
  if (stream.scan) freeBody(stream);
}

function freeBody(stream: Stream): void {
  store<u32>(stream.scan, <u32>spare);
  spare = stream.scan;
  stream.scan = 0;
}

/**
 * Reads what is worth it of the `size` bytes that are buffered, all of them when the body has ended; false when it reads
 * no further.
 */
export function readBody(stream: Stream, size: u32, ended: bool): bool {
  if (changetype<Found>(stream.scan).isForm) return readForm(changetype<Form>(stream.scan), size);
  if (size > maxBodyBytes) {
    closeBody(stream);
    return false;
  }
  const body = changetype<Scan>(stream.scan);
  const least: u32 = ended ? 1 : JSON_PIECE;
  while (size - body.offset >= least) {
    resetArena();
    store<u64>(RESULT, 0);
    const length = min(size - body.offset, JSON_PIECE);
    if (getBuffer(REQUEST_BODY, body.offset, length, RESULT, RESULT + 4) != OK || !resultLength()) break;
    scan(body, resultAt(), resultLength());
  }
  return true;
}

/**
 * A form that is too long is read up to its first file, whether its length was announced or only shows when some of what
 * comes behind has been read.
 */
function readForm(form: Form, size: u32): bool {
  if (size > maxBodyBytes && !form.headOnly) restartAtHead(form);
  const end = min(size, maxBodyBytes);
  while (form.offset < end && !isHeadRead(form)) {
    resetArena();
    store<u64>(RESULT, 0);
    const length = min(end - form.offset, FORM_PIECE);
    if (getBuffer(REQUEST_BODY, form.offset, length, RESULT, RESULT + 4) != OK || !resultLength()) break;
    scanForm(form, resultAt(), resultLength());
  }
  return size <= maxBodyBytes && !isHeadRead(form);
}

/** Address of what has been read of the body, 0 unless it was all of it and was sound. */
// @ts-ignore: decorator
@inline
export function completeBody(stream: Stream): usize {
  return stream.scan ? soundBody(stream.scan) : 0;
}

function soundBody(at: usize): usize {
  const complete = changetype<Found>(at).isForm
    ? isCompleteForm(changetype<Form>(at))
    : isComplete(changetype<Scan>(at));
  return complete ? at : 0;
}

/** The same, or what comes before the first file of a form that is too long. */
function readPart(stream: Stream): usize {
  const at = stream.scan;
  const isHead = at && changetype<Found>(at).isForm && isAtFile(changetype<Form>(at));
  return isHead ? at : completeBody(stream);
}

/** Whether the form that was read, but not completely, was too long rather than broken. */
export function isLongForm(stream: Stream): bool {
  const form = changetype<Form>(stream.scan);
  return form.headOnly && !isBrokenForm(form);
}

/** Supplies model and key from the body where the headers gave none. */
export function takeFromBody(stream: Stream): void {
  const at = readPart(stream);
  if (!at) return;
  const body = changetype<Found>(at);
  if (modelLength == 0 && kindOf(body, Field.MODEL) == Kind.TEXT) {
    // Of a longer text one byte more, so that it is no name: none is longer than what is kept.
    supplyModel(textOf(body, Field.MODEL), <usize>min(lengthOf(body, Field.MODEL), TEXT_LIMIT + 1));
  }
  if (keyLength > 0) return;
  for (let i = 0; i < keyFieldCount; i++) {
    const field = <Field>(FIRST_KEY_FIELD + unchecked(order[i]));
    if (kindOf(body, field) != Kind.TEXT || lengthOf(body, field) == 0) continue;
    supplyKey(textOf(body, field), <usize>min(lengthOf(body, field), TEXT_LIMIT));
    return;
  }
  if (prefixKeyBytes > 0) takePrefix(body);
}

/** Takes turns with the landing region. */
let spareLanding: Region = new Region();

/**
 * Takes the beginning of the conversation for its key, as it stands in the body. Only while the host still has the
 * body: not for requests that waited for the first snapshot.
 */
function takePrefix(body: Found): void {
  for (let i = 0; i < conversations.length; i++) {
    const field = unchecked(conversations[i]);
    if (kindOf(body, field) == Kind.ABSENT) continue;
    const length = min(lengthOf(body, field), prefixKeyBytes);
    // Long headers lie in the landing region, and are still needed.
    spareLanding = swapLanding(spareLanding);
    store<u64>(RESULT, 0);
    if (getBuffer(REQUEST_BODY, startOf(body, field), length, RESULT, RESULT + 4) != OK) return;
    if (resultLength() == <usize>length) supplyKey(resultAt(), resultLength());
    return;
  }
}

/** Whether the request whose headers were read last brings a form, such as an audio file to transcribe. */
export function isForm(): bool {
  return isFormType(typeAt, typeLength);
}

/** The endpoint tells; 0 where it does not. */
function whatFilesAre(): u8 {
  if (pathBegins(AUDIO_PATH)) return AUDIO;
  return pathBegins(IMAGE_PATH) ? IMAGE : 0;
}

/** `application/json`, or a type that ends in `+json`, whatever its parameters; also no type at all. */
function isJsonType(): bool {
  let length: usize = 0;
  while (length < typeLength && load<u8>(typeAt + length) != 0x3b) length++;
  while (length > 0 && load<u8>(typeAt + length - 1) == 0x20) length--;
  if (length == 0) return true;
  if (length < JSON_SUFFIX.length) return false;
  return (
    equalsIgnoringCase(typeAt, length, JSON_TYPE) ||
    equalsIgnoringCase(typeAt + length - JSON_SUFFIX.length, JSON_SUFFIX.length, JSON_SUFFIX)
  );
}
