import { Session } from 'node:inspector';

/** An object taken apart: what it is, and every field of it, private ones (`#name`) included. */
export interface PrivateState {
  readonly kind: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface Property {
  readonly name: string;
  readonly value?: {
    readonly objectId?: string;
    readonly value?: unknown;
    readonly unserializableValue?: string;
  };
}

/**
 * Takes values apart as deep as they go. Only a debugger can see private fields of another object, so this is one. Maps and
 * sets become entries in their order.
 */
export class PrivateStateReader {
  readonly #session = new Session();
  /** `Class.field` of what is not looked at. */
  readonly #leftOut: ReadonlySet<string>;

  constructor(leftOut: readonly string[] = []) {
    this.#leftOut = new Set(leftOut);
    this.#session.connect();
  }

  close(): void {
    this.#session.disconnect();
  }

  read(value: unknown): unknown {
    if (typeof value === 'bigint') return `${value}n`;
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof Map) return { kind: 'Map', entries: [...value].map((entry) => this.read(entry)) };
    if (value instanceof Set) return { kind: 'Set', entries: [...value].map((entry) => this.read(entry)) };
    if (Array.isArray(value)) return value.map((each) => this.read(each));
    if (ArrayBuffer.isView(value)) return (value as Float64Array).slice();
    const fields = Object.entries(value);
    if (Object.getPrototypeOf(value) === Object.prototype) {
      // A field without a value is as good as none.
      return Object.fromEntries(
        fields.flatMap(([name, each]) => (each === undefined ? [] : [[name, this.read(each)]])),
      );
    }
    const kind = value.constructor.name;
    const seen = [...fields, ...this.#privateFields(value)].filter(
      ([name]) => !this.#leftOut.has(`${kind}.${name}`),
    );
    return {
      kind,
      fields: Object.fromEntries(seen.map(([name, each]) => [name, this.read(each)])),
    } as PrivateState;
  }

  #privateFields(object: object): readonly (readonly [string, unknown])[] {
    const shared = globalThis as { privateStateOf?: unknown };
    shared.privateStateOf = object;
    const { result } = this.#post<{ result: { objectId: string } }>('Runtime.evaluate', {
      expression: 'globalThis.privateStateOf',
    });
    const { privateProperties = [] } = this.#post<{ privateProperties?: readonly Property[] }>(
      'Runtime.getProperties',
      {
        objectId: result.objectId,
        ownProperties: true,
      },
    );
    const fields = privateProperties.flatMap(({ name, value }) => {
      // Private methods and getters have no value of their own.
      if (value === undefined) return [];
      if (value.objectId === undefined) return [[name, value.unserializableValue ?? value.value] as const];
      this.#post('Runtime.callFunctionOn', {
        objectId: value.objectId,
        functionDeclaration: 'function () { globalThis.privateStateOf = this; }',
      });
      return typeof shared.privateStateOf === 'function' ? [] : [[name, shared.privateStateOf] as const];
    });
    delete shared.privateStateOf;
    this.#post('Runtime.releaseObjectGroup', { objectGroup: '' });
    return fields;
  }

  /** Answers come at once within one process. */
  #post<T>(method: string, params: object): T {
    let answer: T | undefined;
    this.#session.post(method, params, (error, result) => {
      if (error !== null) throw error;
      answer = result as T;
    });
    return answer!;
  }
}
