#!/usr/bin/env node
import { runAsProgram } from './run.mjs';

await runAsProgram(['cli', ...process.argv.slice(2)]);
