"""Who lives in the sample shop: countries with names, cities and streets in their own scripts.

Pure data. Names are put together from common given and family names, no real person is meant.
"""

from __future__ import annotations

from typing import NamedTuple


class Country(NamedTuple):
    """A country and what its customers are called; `share` is its weight among customers."""

    code: str
    name: str
    native_name: str
    language: str
    currency: str
    tax_percent: float
    share: int
    dial: str
    given: tuple[str, ...]
    family: tuple[str, ...]
    cities: tuple[str, ...]
    streets: tuple[str, ...]
    family_first: bool = False
    joint: str = " "

    def full_name(self, given: str, family: str) -> str:
        """A full name in the order and spacing of the country."""
        parts = (family, given) if self.family_first else (given, family)
        return self.joint.join(parts)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


COUNTRIES: tuple[Country, ...] = (
    Country(
        "US", "United States", "United States", "en", "USD", 7.5, 20, "1",
        _words("James, Mary, Aisha, Diego, Grace, Henry, Olivia, Noah, Zoë, Liam"),
        _words("Smith, Johnson, Nguyen, Garcia, Brown, O'Neil, Clark, Lopez, Young, Baker"),
        _words("Portland, Austin, Duluth, Albany, Fresno"),
        _words("Maple Street, 2nd Avenue, Lakeview Drive, Mill Road"),
    ),
    Country(
        "GB", "United Kingdom", "United Kingdom", "en", "GBP", 20.0, 9, "44",
        _words("Oliver, Amelia, Harry, Isla, Siân, George, Priya, Callum, Freya, Rhys"),
        _words("Jones, Taylor, Davies, Evans, Khan, Wright, Walker, Hughes, Green, Hall"),
        _words("Leeds, Bristol, Cardiff, Dundee, Norwich"),
        _words("High Street, Church Lane, Station Road, King's Walk"),  # codespell:ignore lane
    ),
    Country(
        "DE", "Germany", "Deutschland", "de", "EUR", 19.0, 11, "49",
        _words("Jürgen, Anneliese, Björn, Käthe, Lukas, Sören, Hannah, Günter, Mia, Jörg"),
        _words("Müller, Schäfer, Weiß, Groß, Krämer, Vogel, Böhm, Jäger, Lange, Köhler"),
        _words("Köln, München, Görlitz, Lübeck, Weißenfels"),
        _words("Hauptstraße, Gartenweg, Schloßallee, Am Mühlbach"),
    ),
    Country(
        "FR", "France", "France", "fr", "EUR", 20.0, 8, "33",
        _words("Élodie, François, Zoé, Jérôme, Chloé, Gaël, Inès, Benoît, Léa, Loïc"),
        _words("Lefèvre, Dubois, Bézier, Noël, Fournier, Garçon, Mercier, Hervé, Roux, Petit"),
        _words("Besançon, Orléans, Nîmes, Saint-Étienne, Lyon"),
        _words("rue de l'Église, avenue du Château, place Molière, quai d'Été"),
    ),
    Country(
        "ES", "Spain", "España", "es", "EUR", 21.0, 6, "34",
        _words("José, María, Íñigo, Begoña, Andrés, Lucía, Ángel, Núria, Hugo, Rocío"),
        _words("Muñoz, García, Ibáñez, Peña, Álvarez, Ortega, Núñez, Castaño, Ruiz, Gómez"),
        _words("Málaga, Cádiz, Logroño, A Coruña, León"),
        _words("calle Mayor, paseo del Río, plaza de España, camino Ñandú"),
    ),
    Country(
        "PL", "Poland", "Polska", "pl", "PLN", 23.0, 5, "48",
        _words("Łukasz, Małgorzata, Paweł, Zofia, Stanisław, Żaneta, Jędrzej, Agnieszka, Ewa, Jan"),
        _words("Wójcik, Dąbrowski, Krawczyk, Zając, Woźniak, Gołąb, Król, Sikora, Mróz, Ptak"),
        _words("Łódź, Gdańsk, Rzeszów, Białystok, Poznań"),
        _words("ulica Długa, aleja Róż, plac Wolności, ulica Źródlana"),
    ),
    Country(
        "BR", "Brazil", "Brasil", "pt", "BRL", 17.0, 7, "55",
        _words("João, Conceição, Antônio, Luíza, Vinícius, Inês, Sebastião, Beatriz, Caio, Thaís"),
        _words("Araújo, Gonçalves, Simões, Magalhães, Conceição, Lima, Assunção, Rocha, Brandão"),
        _words("São Luís, Maceió, Florianópolis, Goiânia, Belém"),
        _words("rua das Palmeiras, avenida São João, travessa do Porto, rua da Praça"),
    ),
    Country(
        "TR", "Türkiye", "Türkiye", "tr", "TRY", 20.0, 3, "90",
        _words("Çağla, İbrahim, Gülşen, Oğuz, Şebnem, Ömer, Işıl, Yiğit, Elif, Deniz"),
        _words("Yıldız, Öztürk, Çelik, Şahin, Kılıç, Doğan, Güneş, Aydın, Koç, Işık"),
        _words("İzmir, Eskişehir, Muğla, Şanlıurfa, Çanakkale"),
        _words("Gül Sokak, Atatürk Caddesi, Çınar Sokağı, Deniz Yolu"),
    ),
    Country(
        "VN", "Vietnam", "Việt Nam", "vi", "VND", 10.0, 3, "84",
        _words("Anh, Hương, Đức, Thảo, Minh, Phượng, Quốc, Tuyết, Hiếu, Ngọc"),
        _words("Nguyễn, Trần, Lê, Phạm, Hoàng, Vũ, Đặng, Bùi, Đỗ, Hồ"),
        _words("Hà Nội, Đà Nẵng, Huế, Cần Thơ, Hải Phòng"),
        _words("đường Lê Lợi, phố Huế, đường Trần Phú, ngõ Chợ"),
        True,
    ),
    Country(
        "GR", "Greece", "Ελλάδα", "el", "EUR", 24.0, 4, "30",
        _words("Γιώργος, Ελένη, Νίκος, Σοφία, Δημήτρης, Ειρήνη, Κώστας, Άννα, Θανάσης, Ζωή"),
        _words("Παπαδόπουλος, Ιωάννου, Γεωργίου, Καραγιάννης, Δήμου, Αλεξίου, Ρήγας, Βασιλείου"),
        _words("Αθήνα, Θεσσαλονίκη, Πάτρα, Ηράκλειο, Ιωάννινα"),
        _words("οδός Ερμού, λεωφόρος Κηφισίας, οδός Αθηνάς, πλατεία Ελευθερίας"),
    ),
    Country(
        "UA", "Ukraine", "Україна", "uk", "UAH", 20.0, 4, "380",
        _words("Олена, Андрій, Ірина, Тарас, Юлія, Богдан, Оксана, Євген, Софія, Марко"),
        _words("Шевчук, Коваль, Бондар, Ткач, Мельник, Гончар, Лисенко, Мороз, Зінчук, Єрмак"),
        _words("Київ, Львів, Чернівці, Полтава, Ужгород"),
        _words("вулиця Садова, проспект Миру, вулиця Франка, площа Ринок"),
    ),
    Country(
        "BG", "Bulgaria", "България", "bg", "BGN", 20.0, 2, "359",
        _words("Георги, Мария, Иван, Елена, Димитър, Цветелина, Петър, Ралица, Стоян, Йоана"),
        _words("Иванов, Петрова, Димитров, Николова, Стоянов, Тодорова, Ангелов, Колева"),
        _words("София, Пловдив, Варна, Бургас, Русе"),
        _words("улица Роза, булевард Витоша, улица Шипка, площад Независимост"),
    ),
    Country(
        "EG", "Egypt", "مصر", "ar", "EGP", 14.0, 4, "20",
        _words("أحمد, فاطمة, محمود, ليلى, يوسف, مريم, عمر, هدى, كريم, سلمى"),
        _words("حسن, إبراهيم, النجار, المصري, عبد الله, سليمان, الشريف, منصور, فؤاد, رضوان"),
        _words("القاهرة, الإسكندرية, الجيزة, أسوان, طنطا"),
        _words("شارع النيل, شارع التحرير, ميدان الأوبرا, شارع الزهور"),
    ),
    Country(
        "IL", "Israel", "ישראל", "he", "ILS", 17.0, 2, "972",
        _words("נועה, דוד, יעל, איתן, מיכל, אורי, תמר, יונתן, שירה, אבי"),
        _words("כהן, לוי, מזרחי, פרץ, ביטון, אברהם, פרידמן, גולן, שפירא, ברק"),
        _words("תל אביב, חיפה, באר שבע, נתניה, אילת"),
        _words("רחוב הרצל, שדרות רוטשילד, רחוב הגפן, דרך הים"),
    ),
    Country(
        "IN", "India", "भारत", "hi", "INR", 18.0, 8, "91",
        _words("आरव, प्रिया, रोहन, अनन्या, विक्रम, दीपिका, अर्जुन, मीरा, संजय, कविता"),
        _words("शर्मा, वर्मा, गुप्ता, पटेल, मिश्रा, सिंह, जोशी, चौधरी, त्रिपाठी, यादव"),
        _words("दिल्ली, लखनऊ, जयपुर, भोपाल, वाराणसी"),
        _words("गांधी मार्ग, स्टेशन रोड, कमल गली, नेहरू पथ"),
    ),
    Country(
        "CN", "China", "中国", "zh", "CNY", 13.0, 8, "86",
        _words("伟, 芳, 秀英, 小明, 丽华, 建国, 静, 志强, 雨桐, 浩然"),
        _words("王, 李, 张, 刘, 陈, 杨, 黄, 赵, 周, 吴"),
        _words("上海, 成都, 杭州, 西安, 昆明"),
        _words("人民路, 中山路, 解放大道, 花园街"),
        True, "",
    ),
    Country(
        "JP", "Japan", "日本", "ja", "JPY", 10.0, 6, "81",
        _words("さくら, 健太, 美咲, 翔太, 陽子, 大輔, ゆき, 直樹, 愛, 蓮"),
        _words("佐藤, 鈴木, 高橋, 田中, 渡辺, 伊藤, 山本, 中村, 小林, 加藤"),
        _words("大阪, 札幌, 福岡, 京都, 仙台"),
        _words("桜通り, 中央町, 本町, 緑が丘"),
        True, " ",
    ),
    Country(
        "KR", "South Korea", "대한민국", "ko", "KRW", 10.0, 5, "82",
        _words("민준, 서연, 지훈, 하은, 도윤, 수빈, 예준, 지우, 현우, 유진"),
        _words("김, 이, 박, 최, 정, 강, 조, 윤, 장, 임"),
        _words("서울, 부산, 대구, 인천, 광주"),
        _words("한강로, 중앙로, 벚꽃길, 시청로"),
        True, "",
    ),
)  # fmt: skip

COUNTRY_BY_CODE = {country.code: country for country in COUNTRIES}
