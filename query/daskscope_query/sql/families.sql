-- reads: exceptions_daily
-- A team's exceptions by family, most frequent first: alike in who failed, in type and in what their texts have in
-- common. `since_day` begins what counts; days before it only tell whether a family is new. `user` and `origin` narrow
-- both. What a roll-up of an earlier release does not tell counts as `user`, and a cluster of it on each of its days.
WITH texts AS (SELECT text, family_text(text) AS pattern FROM (SELECT DISTINCT text FROM exceptions_daily)),
said AS (
    SELECT
        d.* REPLACE (coalesce(d.origin, 'user') AS origin),
        t.pattern,
        family_id(d.origin, d.type, t.pattern) AS family
    FROM exceptions_daily d
    JOIN texts t ON t.text IS NOT DISTINCT FROM d.text
    WHERE ($user::VARCHAR IS NULL OR d."user" = $user)
      AND ($origin::VARCHAR IS NULL OR coalesce(d.origin, 'user') = $origin)
),
old AS (SELECT DISTINCT family FROM said WHERE day < $since_day::DATE),
mine AS (SELECT * FROM said WHERE $since_day::DATE IS NULL OR day >= $since_day),
totals AS (
    SELECT
        family,
        any_value(origin) AS origin,
        any_value(type) AS type,
        any_value(pattern) AS pattern,
        arg_max(text, (day, last_at, text)) AS text,
        capped(sum(count)) AS count,
        list(DISTINCT "user" ORDER BY "user") FILTER ("user" IS NOT NULL) AS users,
        min(coalesce(first_at, day::TIMESTAMPTZ)) AS first_at,
        max(coalesce(last_at, day::TIMESTAMPTZ)) AS last_at,
        arg_max(newest, (last_at, day, newest)) FILTER (newest IS NOT NULL) AS newest,
        arg_max(day, (last_at, day, newest)) FILTER (newest IS NOT NULL) AS newest_day,
        coalesce(sum(n_clusters) FILTER (cluster_ids IS NULL), 0) AS n_untold
    FROM mine
    GROUP BY family
),
clusters AS (
    SELECT family, count(DISTINCT cluster_id) AS n
    FROM (SELECT family, unnest(cluster_ids) AS cluster_id FROM mine)
    GROUP BY family
),
prefixes AS (
    SELECT family, arg_max(prefix, (n, prefix)) AS prefix, count(*) AS n
    FROM (SELECT family, prefix, sum(count) AS n FROM mine GROUP BY family, prefix)
    GROUP BY family
),
daily AS (
    SELECT family, list({day: day, count: n} ORDER BY day) AS days
    FROM (SELECT family, day, capped(sum(count)) AS n FROM mine GROUP BY family, day)
    GROUP BY family
)
SELECT
    t.* EXCLUDE (n_untold),
    p.prefix,
    p.n AS n_prefixes,
    capped(t.n_untold + coalesce(c.n, 0)) AS n_clusters,
    CASE WHEN $since_day::DATE IS NOT NULL THEN o.family IS NULL END AS new,
    d.days
FROM totals t
JOIN prefixes p USING (family)
JOIN daily d USING (family)
LEFT JOIN clusters c USING (family)
LEFT JOIN old o USING (family)
ORDER BY count DESC, type, pattern, origin
LIMIT $limit OFFSET $offset
