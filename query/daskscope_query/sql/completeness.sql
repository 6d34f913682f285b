-- reads: samples
-- One cluster's messages by boot: how many were made and came, what was dropped, how far the scheduler's clock was off.
--
-- A message stands for those that were merged into it, too. One of these may have come all the same: it counts once.
WITH mine AS (
    SELECT
        boot,
        seq,
        greatest(seq - coalesce(merged, 0), 0) AS from_seq,
        lost,
        skew_ms,
        min(greatest(seq - coalesce(merged, 0), 0)) OVER (
            PARTITION BY boot ORDER BY seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS known_from_seq
    FROM samples
    WHERE cluster = $cluster
),
skew AS (SELECT median(skew_ms) AS median_ms, min(skew_ms) AS least_ms, max(skew_ms) AS most_ms FROM mine)
SELECT
    boot,
    max(seq) + 1 AS expected,
    capped(sum(greatest(least(seq, coalesce(known_from_seq - 1, seq)) - from_seq + 1, 0))) AS received,
    count(*) AS n_messages,
    arg_max(lost, seq) AS lost,
    any_value(skew.median_ms) AS skew_median_ms,
    any_value(skew.least_ms) AS skew_least_ms,
    any_value(skew.most_ms) AS skew_most_ms
FROM mine, skew
GROUP BY boot
ORDER BY boot
