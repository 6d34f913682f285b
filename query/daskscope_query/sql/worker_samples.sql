-- reads: workers
-- One worker over time in at most `points` points: the newest values of each, but the greatest memory. `since` and
-- `until` narrow them.
WITH mine AS (
    SELECT *
    FROM workers
    WHERE cluster = $cluster
      AND address = $worker
      AND ($since::TIMESTAMPTZ IS NULL OR "at" >= $since)
      AND ($until::TIMESTAMPTZ IS NULL OR "at" <= $until)
),
span AS (SELECT epoch_ms(min("at")) AS low_ms, epoch_ms(max("at")) - epoch_ms(min("at")) + 1 AS length_ms FROM mine),
placed AS (
    SELECT
        mine.* REPLACE (
            max(memory_mib) OVER point AS memory_mib,
            max(managed_mib) OVER point AS managed_mib,
            max(spilled_mib) OVER point AS spilled_mib
        ),
        (epoch_ms("at") - low_ms) * coalesce($points::INTEGER, 600) // length_ms AS point_no
    FROM mine, span
    WINDOW point AS (PARTITION BY (epoch_ms("at") - low_ms) * coalesce($points::INTEGER, 600) // length_ms)
)
SELECT * EXCLUDE (point_no)
FROM placed
QUALIFY row_number() OVER (PARTITION BY point_no ORDER BY boot DESC, seq DESC) = 1
ORDER BY boot, seq
