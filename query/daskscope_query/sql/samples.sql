-- reads: samples
-- One cluster's totals over time in at most `points` points: the newest sample of each, but the greatest memory and
-- queues. `since` and `until` narrow them. A worker's line (worker_samples) is of another table and other figures.
WITH mine AS (
    SELECT *
    FROM samples
    WHERE cluster = $cluster
      AND ($since::TIMESTAMPTZ IS NULL OR "at" >= $since)
      AND ($until::TIMESTAMPTZ IS NULL OR "at" <= $until)
),
span AS (SELECT epoch_ms(min("at")) AS low_ms, epoch_ms(max("at")) - epoch_ms(min("at")) + 1 AS length_ms FROM mine),
placed AS (
    SELECT
        mine.* REPLACE (
            max(memory_bytes) OVER point AS memory_bytes,
            max(managed_bytes) OVER point AS managed_bytes,
            max(spilled_bytes) OVER point AS spilled_bytes,
            max(processing) OVER point AS processing,
            max(waiting) OVER point AS waiting,
            max(queued) OVER point AS queued,
            max(no_worker) OVER point AS no_worker
        ),
        (epoch_ms("at") - low_ms) * coalesce($points::INTEGER, 600) // length_ms AS point_no
    FROM mine, span
    WINDOW point AS (PARTITION BY (epoch_ms("at") - low_ms) * coalesce($points::INTEGER, 600) // length_ms)
)
SELECT * EXCLUDE (point_no)
FROM placed
QUALIFY row_number() OVER (PARTITION BY point_no ORDER BY boot DESC, seq DESC) = 1
ORDER BY boot, seq
