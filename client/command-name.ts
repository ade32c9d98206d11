/** How a person runs this command here: a clone has it as an npm script, and nothing puts `stillroom` on the PATH. */
export const COMMAND = /^(stillroom|demo)$/.test(process.env.npm_lifecycle_event ?? '') ? 'npm run stillroom --' : 'stillroom';
