// The part of the WebAssembly API that the tests use; the types of Node 20 do not declare it.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    constructor(module: Module, imports?: Record<string, ModuleImports>);
    readonly exports: Record<string, unknown>;
  }
  interface Memory {
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  type ModuleImports = Record<string, (...args: never[]) => unknown>;
}
