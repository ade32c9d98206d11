import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockState } from './state-lock.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the lock of a state folder', () => {
  it('is had once, whatever the folder is called, and again when it was given back', () => {
    const state = join(folder, 'x'.repeat(200));
    mkdirSync(state);
    const lock = lockState(state);
    symlinkSync(state, join(folder, 'link'));
    for (const path of [state, `${state}/.`, join(folder, 'link')]) {
      expect(() => lockState(path)).toThrow(`--state ${path}: another trainer is using this folder`);
    }
    renameSync(state, join(folder, 'moved'));
    expect(() => lockState(join(folder, 'moved'))).toThrow('another trainer is using this folder');
    lock.close();
    lock.close();
    lockState(join(folder, 'moved')).close();
  });

  it('says so when it cannot be had for another reason', () => {
    mkdirSync(join(folder, 'trainer.lock'));
    expect(() => lockState(folder)).toThrow(`--state ${folder}: ${join(folder, 'trainer.lock')} cannot be locked (unable to open`);
  });
});
