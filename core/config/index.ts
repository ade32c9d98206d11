export { withBackend } from './backend.ts';
export {
  type ConfigError,
  type ConfigErrorKind,
  describeConfigErrors,
  type ParsedConfig,
  parseRunConfig,
  stringifyRunConfig,
} from './parse.ts';
export { isKnownRenderer, isTinyModel, OWN_TEMPLATE, type RendererChoice, rendererChoice, TINY_RENDERER } from './renderers.ts';
export type { RunConfig } from './schema.ts';
export { startProblems, UNBUILT } from './start-problems.ts';
