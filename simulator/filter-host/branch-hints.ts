// Tells V8 which branches of a module are hardly ever taken, by the section of the branch hinting proposal. V8 then puts what
// they lead to behind the rest of the function, so that fewer lines of code are fetched. The module does the same with or without.

import { assemble, type Node, readModule } from './module-text.js';

/** How often the condition of a branch held, and how often it did not. */
interface Branch {
  held: number;
  failed: number;
}

/** Fewer times say nothing about a branch. */
const LEAST = 20;
/** One in so many times is hardly ever. */
const RARE = 200;

/** To be imported as `env.probe`: is told of a branch and its condition, and returns the condition. */
export type Probe = (number: number, condition: number) => number;

/** The module with hints, by what its branches do while `run` uses it with probes in it. */
export function hintBranches(wasm: Uint8Array, run: (module: Uint8Array, probe: Probe) => void): Uint8Array {
  const { tree, features } = readModule(wasm);
  const branches: Branch[] = [];
  run(assemble({ tree: withProbes(tree), features }), (number, condition) => {
    branches[number] ??= { held: 0, failed: 0 };
    if (condition) branches[number].held++;
    else branches[number].failed++;
    return condition;
  });
  return assemble({ tree: withHints(tree, branches), features });
}

/** Every condition of a branch goes through an import that is told the branch's number, too. */
function withProbes(tree: Node): Node[] {
  const type = [
    ['param', 'i32', 'i32'],
    ['result', 'i32'],
  ];
  const probe: Node = ['import', '"env"', '"probe"', ['func', '$probe', ...type]];
  const [keyword, ...fields] = mapBranches(tree, (branch, number) => {
    const at = conditionOf(branch);
    const condition: Node = ['call', '$probe', ['i32.const', `${number}`], branch[at]!];
    return [branch.with(at, condition)];
  });
  return [keyword!, probe, ...fields];
}

function withHints(tree: Node, branches: readonly Branch[]): Node[] {
  return mapBranches(tree, (branch, number) => {
    const { held = 0, failed = 0 } = branches[number] ?? {};
    const rare = (held + failed) / RARE;
    if (held + failed < LEAST || (held > rare && failed > rare)) return [branch];
    return [['@metadata.code.branch_hint', held > rare ? '"\\01"' : '"\\00"'], branch];
  });
}

/** Replaces all branches, each with a number, the same for the same tree. */
function mapBranches(tree: Node, change: (branch: Node[], number: number) => Node[]): Node[] {
  let count = 0;
  const map = (node: Node): Node[] => {
    if (typeof node === 'string') return [node];
    const number = isBranch(node) ? count++ : -1;
    const mapped = node.flatMap(map);
    return number < 0 ? [mapped] : change(mapped, number);
  };
  return map(tree)[0] as Node[];
}

function isBranch([keyword]: Node[]): boolean {
  return keyword === 'if' || keyword === 'br_if';
}

/** Place of a branch's condition. */
function conditionOf(branch: Node[]): number {
  if (branch[0] === 'br_if') return branch.length - 1;
  return branch.findIndex((child) => typeof child !== 'string' && child[0] !== 'result');
}
