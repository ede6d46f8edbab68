import binaryen from 'binaryen';

/** An expression of the text format. */
export type Node = string | Node[];

export interface ModuleText {
  readonly tree: Node[];
  readonly features: number;
}

export function readModule(wasm: Uint8Array): ModuleText {
  const module = binaryen.readBinary(wasm);
  const features = module.getFeatures();
  const tree = parse(module.emitText());
  module.dispose();
  return { tree, features };
}

export function assemble({ tree, features }: ModuleText): Uint8Array {
  const module = binaryen.parseText(print(tree));
  module.setFeatures(features);
  const binary = module.emitBinary();
  module.dispose();
  return binary;
}

function parse(text: string): Node[] {
  const open: Node[][] = [[]];
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|\(;.*?;\)|;;[^\n]*|[()]|[^\s()";]+/gs)) {
    if (token.startsWith(';;') || token.startsWith('(;')) continue;
    if (token === '(') open.push([]);
    else if (token === ')') {
      const closed = open.pop()!;
      open.at(-1)!.push(closed);
    } else open.at(-1)!.push(token);
  }
  return open[0]![0] as Node[];
}

function print(node: Node): string {
  return typeof node === 'string' ? node : `(${node.map(print).join(' ')})`;
}
