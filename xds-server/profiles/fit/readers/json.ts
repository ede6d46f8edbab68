import { Fields, invalid, isObject } from './fields.js';

/**
 * The records of a JSON file: one object, an array of objects, or one object a line (what `--append-result` and SGLang
 * write). Throws WARDROP_BENCHMARK_INVALID with the place of the fault.
 */
export function jsonRecords(file: string, text: string): Fields[] {
  const whole = tryParse(text);
  if ('value' in whole) return toRecords(file, whole.value);
  const lines = text.split('\n').map((line, index) => ({ text: line.trim(), number: index + 1 }));
  const filled = lines.filter((line) => line.text !== '');
  const first = filled[0];
  // Only a text whose first line is a whole value is line by line; anything else is one damaged document.
  if (first === undefined || filled.length < 2 || !('value' in tryParse(first.text))) {
    throw invalid(placeOfFault(file, text, whole.error), whole.error, 'Pass the file as the tool wrote it');
  }
  return filled.flatMap((line) => {
    const place = `${file}:${line.number}`;
    const parsed = tryParse(line.text);
    if (!('value' in parsed)) {
      throw invalid(place, parsed.error, 'The run was perhaps cut off: leave this line out');
    }
    return toRecords(place, parsed.value);
  });
}

function toRecords(place: string, value: unknown): Fields[] {
  if (isObject(value)) return [new Fields(place, value)];
  if (!Array.isArray(value) || value.length === 0) {
    throw invalid(place, 'holds no benchmark result', 'Pass the file as the tool wrote it');
  }
  return value.map((item: unknown, index) => {
    if (!isObject(item)) {
      throw invalid(`${place}[${index}]`, 'is not an object', 'Pass the file as the tool wrote it');
    }
    return new Fields(`${place}[${index}]`, item);
  });
}

type Parsed = { readonly value: unknown } | { readonly error: string };

function tryParse(text: string): Parsed {
  try {
    return { value: JSON.parse(text) };
  } catch {
    try {
      return { value: JSON.parse(quotePythonNumbers(text)) };
    } catch (error) {
      return { error: `is not JSON (${(error as Error).message})` };
    }
  }
}

/** Python's json writes bare NaN and Infinity, which JSON has not; as strings they reach the check of their field. */
function quotePythonNumbers(text: string): string {
  return text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?Infinity|NaN/g, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
}

function placeOfFault(file: string, text: string, error: string): string {
  const position = /position (\d+)/.exec(error)?.[1];
  if (position === undefined) return file;
  return `${file}:${text.slice(0, Number(position)).split('\n').length}`;
}
