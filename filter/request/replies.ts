// Answers that the filter gives itself: JSON in the shape of OpenAI's errors and of Anthropic's at once, with the headers that
// clients obey.

import * as L from '../../wire/layout';
import { DECISION_HEADER } from '../../wire/names';
import { sendLocalResponse } from '../abi/host';
import { addPair, addPairText, endPairs, startPairs } from '../abi/pairs';
import { random } from '../abi/random';
import { begin, lengthFrom, put, putByte, putBytes, putDecimal, putJson, Text } from '../abi/text';
import {
  BODY_TOO_LARGE,
  INVALID_FORM,
  INVALID_JSON,
  MODEL_MISSING,
  MODEL_NOT_FOUND,
  NEED_UNMET,
  OVERLOADED,
  reasonCode,
  reasonName,
  SHED,
  STARTING,
  UNAVAILABLE,
  UNSUPPORTED_ENCODING,
  UNSUPPORTED_TYPE,
} from '../reasons';
import { needs, textAt, textLength } from '../snapshot/current';
import { tellsTokens } from '../snapshot/validate';
import { needOf } from './needs';

const DETAILS = new Text('wardrop_');
const CONTENT_TYPE = new Text('content-type');
const APPLICATION_JSON = new Text('application/json');
const DECISION = new Text(DECISION_HEADER);
const RETRY_AFTER = new Text('retry-after');
const RETRY_AFTER_MS = new Text('retry-after-ms');
const SHOULD_RETRY = new Text('x-should-retry');
const TRUE = new Text('true');
const FALSE = new Text('false');

const MESSAGE = new Text('{"type":"error","error":{"message":"');
const TYPE = new Text('","type":"');
const CODE = new Text('","param":null,"code":"');
const END = new Text('"}}');
const INVALID_REQUEST = new Text('invalid_request_error');
const RATE_LIMIT = new Text('rate_limit_error');
const SERVER_ERROR = new Text('server_error');

const MODEL_START = new Text('The model `');
const MODEL_END = new Text('` does not exist or is not served here.');
const MISSING = new Text(
  'Several models are served here: name one, as model of the body or in the header x-wardrop-model.',
);
const NO_TYPE = new Text('Bodies of the type `');
const NO_ENCODING = new Text('Bodies with the encoding `');
const SEND_JSON = new Text(
  '` are not read here: send JSON with content-type: application/json, or name the model in the header x-wardrop-model.',
);
const NAME_MODEL = new Text('` are not read here: name the model in the header x-wardrop-model.');
const NOT_JSON = new Text('The body is not valid JSON.');
const NOT_A_FORM = new Text('The body is not a valid form.');
const TOO_DEEP = new Text('The body nests too deeply.');
const TOO_LARGE = new Text(
  'The body is too large to be read here: name the model in the header x-wardrop-model.',
);
const FORM_TOO_LARGE = new Text(
  'The form is too large to be read here: name the model before the first file, or in the header x-wardrop-model.',
);
const UNMET = new Text('No engine of this model meets what the request needs: ');
const COMMA = new Text(', ');
const CONTEXT_LENGTH = new Text('context_length_exceeded');
const AT_LIMIT = new Text('All engines of this model are at their limit. Try again later.');
const NO_ENGINE = new Text('No engine of this model is available. Try again later.');
const NO_PLAN = new Text('The proxy is starting and has no plan yet. Try again later.');

/** Longest part of a client's text that is repeated in a message. */
const ECHO_LIMIT: usize = 128;

/** 404: the model that the client names is not in the snapshot. */
export function answerModelNotFound(modelAt: usize, modelLength: usize): void {
  answerEchoing(404, MODEL_NOT_FOUND, MODEL_START, modelAt, modelLength, MODEL_END);
}

/** 400: the client names no model and there are several. */
export function answerModelMissing(): void {
  startReply(MODEL_MISSING);
  endReply(400, MODEL_MISSING, MISSING.at, MISSING.length, INVALID_REQUEST);
}

/**
 * 400: no engine of the model meets the needs that the request carries; the message names them. A prompt that is too
 * long for all, or with its answer may become so, has the code that clients know.
 */
export function answerNeedUnmet(model: usize, carried: u64): void {
  startReply(NEED_UNMET);
  const message = begin();
  put(UNMET);
  let code = reasonCode(NEED_UNMET);
  let first = true;
  for (let i: u32 = 0; i < load<u32>(model, L.MODEL_NEEDS_COUNT); i++) {
    const number = needOf(model, i);
    if (((carried >> <u64>number) & 1) == 0) continue;
    const need = needs + <usize>number * L.NEED_SIZE;
    if (!first) put(COMMA);
    first = false;
    putJson(textAt(need + L.NEED_ID), textLength(need + L.NEED_ID), ECHO_LIMIT);
    if (tellsTokens(load<u32>(need, L.NEED_KIND))) code = CONTEXT_LENGTH;
  }
  putByte(0x2e);
  endReply(400, NEED_UNMET, message, lengthFrom(message), INVALID_REQUEST, code);
}

/** 415: the model is in a body of a type that is not read. */
export function answerUnsupportedType(typeAt: usize, typeLength: usize): void {
  answerEchoing(415, UNSUPPORTED_TYPE, NO_TYPE, typeAt, typeLength, SEND_JSON);
}

/** 415: the model is in an encoded body. */
export function answerUnsupportedEncoding(encodingAt: usize, encodingLength: usize): void {
  answerEchoing(415, UNSUPPORTED_ENCODING, NO_ENCODING, encodingAt, encodingLength, NAME_MODEL);
}

/** 400: the model should be in the body, and the body is not JSON, or nests too deeply. */
export function answerInvalidJson(tooDeep: bool): void {
  startReply(INVALID_JSON);
  const message = tooDeep ? TOO_DEEP : NOT_JSON;
  endReply(400, INVALID_JSON, message.at, message.length, INVALID_REQUEST);
}

/** 400: the model should be in the form, and the form is broken. */
export function answerInvalidForm(): void {
  startReply(INVALID_FORM);
  endReply(400, INVALID_FORM, NOT_A_FORM.at, NOT_A_FORM.length, INVALID_REQUEST);
}

/** 413: the form is longer than is read, and what comes before its first file is not enough. */
export function answerFormTooLarge(): void {
  startReply(BODY_TOO_LARGE);
  endReply(413, BODY_TOO_LARGE, FORM_TOO_LARGE.at, FORM_TOO_LARGE.length, INVALID_REQUEST);
}

/** 413: the model should be in the body, and the body is longer than is read. */
export function answerTooLarge(): void {
  startReply(BODY_TOO_LARGE);
  endReply(413, BODY_TOO_LARGE, TOO_LARGE.at, TOO_LARGE.length, INVALID_REQUEST);
}

/** 429: the plan sheds this request; `again` tells the client's own retry logic whether to come back. */
export function answerShed(again: bool): void {
  answerAtLimit(SHED, again);
}

/** 429: all engines have as many requests in flight as this Envoy may send them. */
export function answerOverloaded(again: bool): void {
  answerAtLimit(OVERLOADED, again);
}

function answerAtLimit(reason: u8, again: bool): void {
  startReply(reason);
  addRetryAfter(again);
  endReply(429, reason, AT_LIMIT.at, AT_LIMIT.length, RATE_LIMIT);
}

/** 503: no engine can take the request. */
export function answerUnavailable(again: bool): void {
  startReply(UNAVAILABLE);
  addRetryAfter(again);
  endReply(503, UNAVAILABLE, NO_ENGINE.at, NO_ENGINE.length, SERVER_ERROR);
}

/** 503: no snapshot has arrived in time. */
export function answerStarting(): void {
  startReply(STARTING);
  addRetryAfter(true);
  endReply(503, STARTING, NO_PLAN.at, NO_PLAN.length, SERVER_ERROR);
}

const READY_CHECK = new Text('wardrop_ready_check');
const READY = new Text('{"ready":true}');
const NOT_READY = new Text('{"ready":false}');

export function answerReadyCheck(ready: bool): void {
  startPairs();
  addPairText(CONTENT_TYPE, APPLICATION_JSON);
  const body = ready ? READY : NOT_READY;
  const headers = endPairs();
  send(ready ? 200 : 503, READY_CHECK.at, READY_CHECK.length, body.at, body.length, headers);
}

/** 1 to 4 seconds, at random, so that clients do not come back together. */
function addRetryAfter(again: bool): void {
  const ms = 1_000 + (((random() >> 32) * 3_000) >> 32);
  const exact = begin();
  putDecimal(ms);
  addPair(RETRY_AFTER_MS, exact, lengthFrom(exact));
  const seconds = begin();
  putDecimal((ms + 999) / 1_000);
  addPair(RETRY_AFTER, seconds, lengthFrom(seconds));
  addPairText(SHOULD_RETRY, again ? TRUE : FALSE);
}

/** An error of the client's whose message repeats something the client sent. */
function answerEchoing(status: u32, reason: u8, before: Text, at: usize, length: usize, after: Text): void {
  startReply(reason);
  const message = begin();
  put(before);
  putJson(at, length, ECHO_LIMIT);
  put(after);
  endReply(status, reason, message, lengthFrom(message), INVALID_REQUEST);
}

function startReply(reason: u8): void {
  startPairs();
  addPairText(CONTENT_TYPE, APPLICATION_JSON);
  addPairText(DECISION, reasonName(reason));
}

function endReply(
  status: u32,
  reason: u8,
  message: usize,
  messageLength: usize,
  type: Text,
  code: Text = reasonCode(reason),
): void {
  const body = begin();
  put(MESSAGE);
  putBytes(message, messageLength);
  put(TYPE);
  put(type);
  put(CODE);
  put(code);
  put(END);
  const bodyLength = lengthFrom(body);
  const details = begin();
  put(DETAILS);
  put(reasonCode(reason));
  const detailsLength = lengthFrom(details);
  send(status, details, detailsLength, body, bodyLength, endPairs());
}

/** `headers` is the text composed last. */
function send(
  status: u32,
  details: usize,
  detailsLength: usize,
  body: usize,
  bodyLength: usize,
  headers: usize,
): void {
  sendLocalResponse(status, details, detailsLength, body, bodyLength, headers, lengthFrom(headers), -1);
}
