/** Where the tokenizer and the chat template of a model come from: a folder, the hub's cache on this machine, or the hub. */

export { ModelFilesUnavailable } from './errors.ts';
export { type HubAccess, hubAccess } from './hub-access.ts';
export { type FoundFiles, ModelFiles } from './model-files.ts';
export { type FileDigests, fileDigests } from './tokenizer-files.ts';
