// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace heddle::cluster {

/// Version n of the schema is what the first n of these make; a store of an older version gets the rest.
inline constexpr const char* kJobStoreSchema[] = {R"(
CREATE TABLE jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  request_id TEXT NOT NULL UNIQUE,
  script BLOB NOT NULL,
  start BLOB NOT NULL,
  workers_wanted INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  reason BLOB NOT NULL,
  workers BLOB NOT NULL,
  worker_names BLOB NOT NULL,
  outcome BLOB NOT NULL,
  statistics BLOB NOT NULL,
  submitted_ms INTEGER NOT NULL,
  finished_ms INTEGER NOT NULL,
  output_bytes INTEGER NOT NULL);
CREATE TABLE transitions (
  job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  sequence INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  reason BLOB NOT NULL,
  time_ms INTEGER NOT NULL,
  PRIMARY KEY (job, sequence)) WITHOUT ROWID;
CREATE TABLE output (
  job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  first INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (job, first)) WITHOUT ROWID;
)",
                                                  R"(
CREATE TABLE drained_workers (
  uuid TEXT PRIMARY KEY,
  name BLOB NOT NULL) WITHOUT ROWID;
)",
                                                  R"(
ALTER TABLE jobs ADD COLUMN digest BLOB NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
CREATE TABLE epochs (last INTEGER NOT NULL);
INSERT INTO epochs VALUES (0);
CREATE TABLE workers_here (
  uuid TEXT PRIMARY KEY,
  name BLOB NOT NULL) WITHOUT ROWID;
)",
                                                  R"(
ALTER TABLE jobs ADD COLUMN retry_for_ms INTEGER NOT NULL DEFAULT 86400000;
ALTER TABLE jobs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN first_loss_ms INTEGER NOT NULL DEFAULT 0;
)",
                                                  R"(
ALTER TABLE jobs ADD COLUMN owner BLOB NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN deadline_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN shares BLOB NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN plan_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX finished_jobs ON jobs (number) WHERE state IN ('SUCCEEDED', 'FAILED', 'CANCELLED');
CREATE TABLE usage (
  owner BLOB PRIMARY KEY,
  core_ms INTEGER NOT NULL,
  time_ms INTEGER NOT NULL) WITHOUT ROWID;
)",
                                                  R"(
CREATE TABLE job_files (
  job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  kind TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  first INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  UNIQUE (job, kind, attempt, rank));
)",
                                                  R"(
ALTER TABLE jobs ADD COLUMN checkpoints BLOB NOT NULL DEFAULT '[]';
ALTER TABLE jobs ADD COLUMN resumed INTEGER NOT NULL DEFAULT 0;
)",
                                                  R"(
CREATE TABLE identity (id TEXT NOT NULL);
INSERT INTO identity VALUES (lower(hex(randomblob(8))));
ALTER TABLE jobs ADD COLUMN finish INTEGER NOT NULL DEFAULT 0;
DROP INDEX finished_jobs;
CREATE INDEX finished_jobs ON jobs (finish, number) WHERE state IN ('SUCCEEDED', 'FAILED', 'CANCELLED');
)"};

}  // namespace heddle::cluster
