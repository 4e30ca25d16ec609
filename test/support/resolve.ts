import { resolveHere } from '../../core/config/installation/resolve.ts';

// Test files find what they try as a gateway that runs finds it. Otherwise the test runner hears of each of some five thousand imports, in
// every process anew, so that it would know which tests to run again when a file changes.
resolveHere();
